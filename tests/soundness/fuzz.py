"""Random schedules: ``python -m tests.soundness.fuzz --calls N --seed S`` runs pairs of random changes on random programs.

Each schedule has steady calls, a change (one of the program's own, a generic one that fits its world, or of the
interpreter's own state), calls, a second change, calls. Every difference is printed with the seed that repeats it
(``--seed S --only NAME``). Key functions: random_schedule, main.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
import traceback
from collections import Counter

import torch

from tests.soundness.harness import Report, Step, run
from tests.soundness.world import AMBIENT, Change, Program, World, generic_changes, named_change, programs


def possible_changes(program: Program) -> tuple[list[Change], list[Change]]:
    """(the program's own changes, generic ones)."""
    world = World(program, "list")
    return [named_change(n) for n in world.changes], [*generic_changes(world), *AMBIENT]


def random_schedule(
    program: Program, rng: random.Random, changes: tuple[list[Change], list[Change]] | None = None
) -> list[Step]:
    own, generic = changes or possible_changes(program)

    def pick() -> Change:
        return rng.choice(own) if own and rng.random() < 0.4 else rng.choice(generic)

    first, second = pick(), pick()
    steps = [Step()] * rng.randint(1, 3) + [Step(first)] + [Step()] * rng.randint(0, 2) + [Step(second)]
    steps += [Step()] * rng.randint(0, 2)
    if rng.random() < 0.3:
        steps += [Step(first), Step()]
    return steps


def fuzz(
    calls: int, seed: int, only: str = "", backend: str = "eager", seconds: float = 0.0
) -> tuple[list[Report], Counter[str]]:
    """Run schedules until ``calls`` calls were compared (or ``seconds`` passed); the reports that differ, and totals."""
    rng = random.Random(seed)
    chosen = [p for p in programs() if (only == "" and "alone" not in p.options) or only == p.name]
    known = {}
    bad: list[Report] = []
    total: Counter[str] = Counter()
    start = time.monotonic()
    while total["calls"] < calls and not (seconds and time.monotonic() - start > seconds):
        number = rng.getrandbits(32)
        program = rng.choice(chosen)
        if program.name not in known:
            known[program.name] = possible_changes(program)
        schedule = random_schedule(program, random.Random(number), known[program.name])
        try:
            report = run(program, schedule, backend=backend)
        except Exception:
            print(f"{program.name} (schedule {number}): the harness failed\n{traceback.format_exc()}", flush=True)
            total["failed"] += 1
            continue
        total.update(calls=report.calls, changed=report.changed, hits=report.hits, recordings=report.recordings, schedules=1)
        total["captured"] += report.captured
        if report.differences:
            bad.append(report)
            print(f"{program.name} (schedule {number}):")
            for line in [*report.trail, *report.differences[:4]]:
                print("    " + line[:240])
            print(f"    hits {report.hits_by_call}", flush=True)
    return bad, total


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=5000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="")
    parser.add_argument("--backend", default="eager")
    parser.add_argument("--seconds", type=float, default=0.0)
    options = parser.parse_args()
    torch.set_num_threads(1)
    bad, total = fuzz(options.calls, options.seed, options.only, options.backend, options.seconds)
    print(", ".join(f"{v} {k}" for k, v in total.items()), f"; {len(bad)} schedules differ (seed {options.seed})")
    return 1 if bad or total["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
