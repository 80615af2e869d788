"""The corpus with its functions cut at random places: ``python -m tests.soundness.cut_campaign --calls N --seed S``.

Schedules are those of ``tests.soundness.fuzz``: the world changes between calls, and between stretches by what the programs
do themselves. Every difference is printed with what repeats it. Key function: main.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections import Counter

import torch

from tests.soundness.fuzz import Changes, deterministic, schedule_of
from tests.soundness.harness.cuts import every_stretch_serves
from tests.soundness.harness.run import Report, run
from tests.soundness.harness.world import Program, programs

_UNBOUND = "UnboundLocalError != NameError"


def one(program: Program, number: int, known: dict[str, Changes]) -> Report:
    """One schedule of one program, cut as ``number`` says."""
    with every_stretch_serves(but_for=random.Random(number)):
        return run(program, schedule_of(program, number, known), cuts=random.Random(number))


def campaign(calls: int, seed: int, seconds: float = 0.0) -> tuple[list[str], Counter[str]]:
    """Differences, and totals, of at least ``calls`` calls (or ``seconds``)."""
    rng, start = random.Random(seed), time.monotonic()
    known: dict[str, Changes] = {}
    total: Counter[str] = Counter()
    differences: list[str] = []
    chosen = [program for program in programs() if "alone" not in program.options]
    while total["calls"] < calls and not (seconds and time.monotonic() - start > seconds):
        program, number = rng.choice(chosen), rng.getrandbits(32)
        report = one(program, number, known)
        total.update(
            {"calls": report.calls, "changed": report.changed, "replays": report.hits, "recordings": report.recordings}
        )
        total["schedules"] += 1
        if report.differences and _UNBOUND in report.differences[0]:
            total["known limit: the class of an error about an unbound variable"] += 1
        elif report.differences and deterministic(program, schedule_of(program, number, known)):
            differences.append(f"{program.name}:{number}: {report.differences[0][:300]}")
            print(differences[-1], flush=True)
    return differences, total


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=3000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--repeat", default="", help="PROGRAM:NUMBER, as printed with a difference")
    options = parser.parse_args()
    torch.set_num_threads(1)
    if options.repeat:
        name, _, number = options.repeat.partition(":")
        report = one(next(p for p in programs() if p.name == name), int(number), {})
        print("\n".join([str(report), *report.trail, *report.differences]))
        return bool(report.differences)
    differences, total = campaign(options.calls, options.seed)
    print(", ".join(f"{value} {name}" for name, value in total.items()))
    print(f"{len(differences)} schedules differ (seed {options.seed})")
    return bool(differences)


if __name__ == "__main__":
    sys.exit(main())
