"""Random schedules: ``python -m tests.soundness.fuzz --calls N --seed S`` changes the world between calls.

Each schedule has steady calls, a change, calls, a second change and so on; some changes come back at the end, when a capture
for them exists. A change's kind is drawn first, then its place, so that rare kinds are tried as often as common ones.
``--calls`` counts changed calls: those before which something was changed. Every difference is printed, shortened, with what
repeats it (``--repeat PROGRAM:NUMBER``). ``tests.soundness.campaign`` runs many seeds and keeps their results.
Key functions: random_schedule, fuzz, main.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import torch

from tests.soundness.harness.batch import shortest
from tests.soundness.harness.changes import generic_changes
from tests.soundness.harness.module_changes import ambient_changes
from tests.soundness.harness.run import Report, Step, run
from tests.soundness.harness.world import Change, Program, World, named_change, programs

Changes = tuple[list[Change], dict[str, list[Change]]]


def possible_changes(program: Program, world: World | None = None) -> Changes:
    """(the program's own changes, generic ones by kind)."""
    world = world or World(program, "eager")
    kinds: dict[str, list[Change]] = {}
    for change in [*generic_changes(world), *ambient_changes(world)]:
        kinds.setdefault(change.kind, []).append(change)
    return [named_change(n) for n in world.changes], kinds


def random_schedule(program: Program, rng: random.Random, changes: Changes | None = None) -> list[Step]:
    own, generic = changes or possible_changes(program)

    groups: dict[str, list[str]] = {}
    for kind in generic:
        groups.setdefault(kind.partition(":")[0] if ":" in kind else "object", []).append(kind)

    def pick() -> Change:
        if own and rng.random() < 0.25:
            return rng.choice(own)
        group = groups[rng.choice([g for g in ("object", "object", "object", "arguments", "ambient") if g in groups])]
        return rng.choice(generic[rng.choice(group)])

    steps = [Step()] * rng.randint(1, 3)
    made: list[Change] = []
    for _ in range(rng.choice((1, 2, 3, 3, 4, 6))):
        made.append(pick())
        steps += [Step(made[-1])] + [Step()] * rng.choice((0, 0, 0, 1, 1, 2))
    if rng.random() < 0.3:
        steps += [Step(made[0]), Step()]
    return steps


def tell(report: Report, number: int, steps: Sequence[Step], again: Callable[[Sequence[Step]], Report]) -> None:
    print(f"{report.program.name} (--repeat {report.program.name}:{number}):")
    short = again(shortest(steps, lambda s: bool(again(s).differences), math.inf))
    for line in [*short.trail, *(short.differences or report.differences)[:5]]:
        print("    " + line[:300])
    print(f"    hits {short.hits_by_call}", flush=True)


def fuzz(
    calls: int, seed: int, only: str = "", backend: str = "eager", seconds: float = 0.0
) -> tuple[list[Report], Counter[str], Counter[str]]:
    """Run schedules until ``calls`` changed calls were compared (or ``seconds`` passed): the reports that differ, totals,
    and how often each kind of change was made."""
    rng = random.Random(seed)
    chosen = [p for p in programs() if (only == "" and "alone" not in p.options) or only == p.name]
    modules = [p for p in chosen if "nn.Module" in p.source or "nn.Sequential" in p.source or "nn.Linear" in p.source]
    known: dict[str, Changes] = {}
    bad: list[Report] = []
    total: Counter[str] = Counter()
    kinds: Counter[str] = Counter()
    start = time.monotonic()
    while total["changed calls"] < calls and not (seconds and time.monotonic() - start > seconds):
        # programs with modules have the most that can change, so they come more often
        program, number = rng.choice(modules if modules and rng.random() < 0.3 else chosen), rng.getrandbits(32)
        try:
            report = one(program, number, known, backend)
        except Exception:
            print(f"--repeat {program.name}:{number}: the harness failed\n{traceback.format_exc()}", flush=True)
            total["failures of the harness"] += 1
            continue
        total.update({
            "calls": report.calls, "changed calls": report.changed, "replays": report.hits, "recordings": report.recordings,
            "changed calls where guards held": report.held, "changed calls where guards failed": report.failed,
            "schedules": 1, "schedules with a replay": int(report.captured), "captures": report.captures,
        })  # fmt: skip
        kinds += report.kinds
        if report.differences and not deterministic(program, schedule_of(program, number, known)):
            total["schedules where eager differs from eager"] += 1  # memory that torch leaves uninitialised
        elif report.differences:
            bad.append(report)
            tell(report, number, schedule_of(program, number, known), lambda s, p=program: run(p, s, backend=backend))  # type: ignore[misc]
    total["programs"] = len(known)
    total["kinds of change"] = len(kinds)
    return bad, total, kinds


def deterministic(program: Program, steps: Sequence[Step]) -> bool:
    """Whether two plain worlds stay indistinguishable, whatever stands in memory that torch leaves as it finds it."""
    return not any(run(program, steps, compiler=_soiled).differences for _ in range(4))


def _soiled(target: Callable[..., Any]) -> Callable[..., Any]:
    """The plain target, which finds other numbers in freed memory than its twin did."""

    def call(*args: Any, **kwargs: Any) -> Any:
        for size in range(1, 257):
            torch.full((size,), -size / 7)
        return target(*args, **kwargs)

    return call


def schedule_of(program: Program, number: int, known: dict[str, Changes]) -> list[Step]:
    if program.name not in known:
        known[program.name] = possible_changes(program)
    return random_schedule(program, random.Random(number), known[program.name])


def one(program: Program, number: int, known: dict[str, Changes], backend: str) -> Report:
    return run(program, schedule_of(program, number, known), backend=backend)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=5000, help="changed calls")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="", help="a program")
    parser.add_argument("--repeat", default="", help="PROGRAM:NUMBER, as printed with a difference")
    parser.add_argument("--backend", default="eager")
    parser.add_argument("--seconds", type=float, default=0.0)
    parser.add_argument("--json", action="store_true", help="the result as one line of JSON")
    parser.add_argument("--kinds", action="store_true", help="print how often each kind of change was made")
    options = parser.parse_args()
    torch.set_num_threads(1)
    if options.repeat:
        name, _, number = options.repeat.partition(":")
        program = next(p for p in programs() if p.name == name)
        report = one(program, int(number), {}, options.backend)
        print(report)
        for line in [*report.trail, *report.differences, f"hits {report.hits_by_call}", *map(str, report.findings)]:
            print("    " + line)
        return 1 if report.differences else 0
    bad, total, kinds = fuzz(options.calls, options.seed, options.only, options.backend, options.seconds)
    if options.kinds:
        print("\n".join(f"{count:>7} {kind}" for kind, count in kinds.most_common()))
    if options.json:
        differences = [f"{r.program.name}: {r.differences[0]}" for r in bad]
        differences += ["the harness failed"] * total["failures of the harness"]
        print(json.dumps({"total": total, "kinds": kinds, "differences": differences}))
    else:
        print(", ".join(f"{v} {k}" for k, v in total.items()))
        print(f"{len(bad)} schedules differ (seed {options.seed})")
    return 1 if bad or total["failures of the harness"] else 0


if __name__ == "__main__":
    sys.exit(main())
