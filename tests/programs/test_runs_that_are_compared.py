"""What a run that is compared saves, and where it stops: before the first call after its last step."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from magpy_core.runner.request import SESSIONS, Record
from tests.programs.runner_help import under_magpy, write

PROGRAM = """
    import copy
    import torch
    from torch import nn

    torch.manual_seed(0)

    class Training:
        def __init__(self):
            self.net = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4), nn.Linear(4, 1))
            self.average = copy.deepcopy(self.net)
            self.optimizer = torch.optim.AdamW(self.net.parameters(), lr=0.01)

        def step(self):
            self.optimizer.zero_grad()
            self.net(torch.rand(8, 4)).square().mean().backward()
            self.optimizer.step()
            with torch.no_grad():
                self.net[0].weight.clamp_(-0.3, 0.3)
                for mean, parameter in zip(self.average.parameters(), self.net.parameters()):
                    mean.lerp_(parameter, 0.1)

    def main():
        training = Training()
        for step in range(10):
            training.step()
            print("step", step)

    main()
"""


def recorded(
    folder: Path, name: str, *, steps: int, mode: str, at: list[int] | None = None, noise: int | None = None
) -> Any:
    """The index, the states by label, and what was printed."""
    into = folder / name
    into.mkdir()
    session = SESSIONS["magpy" if mode == "run" else "eager"]
    record = Record(str(into), at, noise)
    options = {"mode": mode, "steps": steps, "record": record, "session_factory": session, "backend": "eager"}
    ran = under_magpy(folder, script=write(folder, PROGRAM), compile="foreground", **options)
    assert ran.outcome.kind == "ok", ran.outcome.message
    index = json.loads((into / "index.json").read_text())
    assert index["error"] == ""
    states = {label: torch.load(into / file) for label, file in index["states"].items()}
    return index, states, ran.stdout.decode()


@pytest.mark.parametrize("steps", [0, 5])
def test_what_follows_a_step_is_done_in_both_runs(tmp_path: Path, steps: int) -> None:
    """A clamp and an average of weights follow the optimizer's step; a compiled step has them in it."""
    index, compiled, printed = recorded(tmp_path, "compiled", steps=steps, mode="run")
    _, eager, expected = recorded(tmp_path, "eager", steps=steps, mode="check", at=[1, 2, 4])
    assert (index["steps"], index["itself"]) == (steps or 10, not steps)
    assert printed == expected == "".join(f"step {n}\n" for n in range(steps or 10))
    assert [label for label in compiled if label in eager][:3] == ["1", "2", "4"]
    for label in ("1", "2", "4", "end"):
        assert compiled[label].keys() == eager[label].keys()
        assert [name for name, value in eager[label].items() if not torch.equal(value, compiled[label][name])] == []
    assert ("torch's random state" in eager["end"]) == (not steps)


def test_the_state_has_all_modules_and_what_optimizers_keep(tmp_path: Path) -> None:
    _, states, _ = recorded(tmp_path, "eager", steps=2, mode="check", at=[1])
    names = set(states["1"])
    assert {"Sequential.0.weight", "#2 Sequential.0.weight", "Sequential.1.running_mean"} <= names
    assert {"AdamW (learning rate)", "Sequential.0.weight (exp_avg of AdamW)"} <= names  # the trained one comes first


def test_noise_changes_the_state_a_little_and_nothing_before_the_first_call(tmp_path: Path) -> None:
    runs = [recorded(tmp_path, f"noise{n}", steps=3, mode="check", at=[1], noise=n)[1]["end"] for n in (None, 0)]
    plain, noisy = (one["Sequential.2.weight"] for one in runs)
    assert not torch.equal(plain, noisy) and torch.allclose(plain, noisy, atol=1e-4)
