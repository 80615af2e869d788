"""Random changes of the world between the calls of training steps, compared with eager mode after every call.

``python -m tests.soundness.step_campaign --calls 30000 --seed 1``; exit status 1 if there is a difference.
"""

from __future__ import annotations

import argparse
import copy
import random
import sys
import time
import warnings
from dataclasses import replace
from typing import Any

import torch
from torch import nn

from tests.soundness import test_steps as steps
from tests.soundness.step_programs import STEPS
from tests.soundness.test_steps import PROGRAMS, Change, Program, World


def _layer(w: World) -> Any:
    return w.model.last


def set_rate(w: World) -> None:
    for group in w.optimizer.param_groups:
        group["lr"] = group["lr"] * 0.5


def set_decay(w: World) -> None:
    for group in w.optimizer.param_groups:
        if "weight_decay" in group:
            group["weight_decay"] = 0.05


def freeze(w: World) -> None:
    _layer(w).weight.requires_grad_(False)


def unfreeze(w: World) -> None:
    _layer(w).weight.requires_grad_(True)


def freeze_and_forget(w: World) -> None:
    _layer(w).bias.requires_grad_(False)
    _layer(w).bias.grad = None


def swap_parameter(w: World) -> None:
    """The model gets another parameter, which the optimizer does not know."""
    _layer(w).bias = nn.Parameter(torch.full_like(_layer(w).bias, 0.25))


def swap_module(w: World) -> None:
    torch.manual_seed(5)
    w.model.last = nn.Linear(_layer(w).in_features, 2)


def add_group(w: World) -> None:
    known = {id(p) for group in w.optimizer.param_groups for p in group["params"]}
    new = [p for p in w.model.parameters() if id(p) not in known]
    if new:
        w.optimizer.add_param_group({"params": new})


def load_state(w: World) -> None:
    w.optimizer.load_state_dict(copy.deepcopy(w.optimizer.state_dict()))


def load_model(w: World) -> None:
    w.model.load_state_dict({name: value * 0.5 for name, value in copy.deepcopy(w.model.state_dict()).items()})


def hook(w: World) -> None:
    w.extra["hook"] = _layer(w).weight.register_hook(lambda g: g * 2) if _layer(w).weight.requires_grad else None


def unhook(w: World) -> None:
    if w.extra.get("hook") is not None:
        w.extra["hook"].remove()


def forward_hook(w: World) -> None:
    w.extra["forward_hook"] = w.model.register_forward_hook(lambda m, args, out: out * 0.5)


def fewer_threads(w: World) -> None:
    torch.set_num_threads(1)


def clear_state(w: World) -> None:
    w.optimizer.state.clear()


def share_gradient(w: World) -> None:
    first: Any = w.model.first  # type: ignore[union-attr]
    _layer(w).bias.grad = torch.ones_like(_layer(w).bias)
    first.bias.grad = torch.ones_like(first.bias)


CHANGES: tuple[Change, ...] = (
    set_rate, set_decay, freeze, unfreeze, freeze_and_forget, swap_parameter, swap_module, add_group, load_state, load_model,
    hook, unhook, forward_hook, fewer_threads, clear_state, share_gradient, steps.preset, steps.clear, steps.to_eval,
    steps.to_train, steps.write_data,
)  # fmt: skip


def _changes(rng: random.Random, known: dict[int, Change]) -> dict[int, Change]:
    """Some of the changes before some of the calls; those that the program makes itself stay."""
    found = dict(known)
    for call in range(1, steps.STEPS):
        if rng.random() < 0.35:
            chosen = rng.sample(CHANGES, rng.choice((1, 1, 2)))
            before = found.get(call)

            def change(w: World, chosen: list[Change] = chosen, before: Change | None = before) -> None:
                if before is not None:
                    before(w)
                for one in chosen:
                    one(w)

            change.__name__ = "+".join(getattr(one, "__name__", "?") for one in chosen)
            found[call] = change
    return found


def _outcome(program: Program, backend: str) -> str:
    """What differs; empty if nothing does. What eager mode itself refuses is no difference."""
    try:
        steps.run(program, backend)
    except AssertionError as error:
        return f"differs: {error}"
    except Exception as error:
        return f"raises {type(error).__name__}: {str(error)[:200]}" if _plain_runs(program) else ""
    return ""


def _plain_runs(program: Program) -> bool:
    """Whether the program and its changes run in eager mode."""
    import magpy_core

    try:
        with magpy_core.disabled():
            steps.run(program, "eager")
    except AssertionError:
        return True
    except Exception:
        return False
    return True


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=30_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--backend", default="eager")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    rng = random.Random(args.seed)
    programs = {**PROGRAMS, **STEPS}
    start, calls, failed = time.monotonic(), 0, 0
    while calls < args.calls:
        name = rng.choice(list(programs))
        program = replace(programs[name], changes=_changes(rng, programs[name].changes))
        outcome = _outcome(program, args.backend)
        calls += steps.STEPS
        if outcome:
            failed += 1
            made = {i: getattr(change, "__name__", "?") for i, change in sorted(program.changes.items())}
            print(f"{name} {made}: {outcome}", flush=True)
    print(f"{calls} calls, {failed} differences, {time.monotonic() - start:.0f} s")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
