"""Random programs under random changes: ``python -m tests.soundness.generators.random_programs.run --seed S --programs N``.

Every program is run unchanged first and then under random schedules (``tests.soundness.fuzz``). A difference is printed,
shortened; ``--show SEED`` prints the program. Key function: try_program.
"""

from __future__ import annotations

import argparse
import random
import signal
import sys
import time
from collections import Counter
from typing import Any

import torch

from tests.soundness.fuzz import deterministic, possible_changes, random_schedule, tell
from tests.soundness.generators.random_programs.writer import program, source
from tests.soundness.harness.run import Step, run

_SECONDS = 20


class TooLong(BaseException):
    """A schedule does not end: what was changed can make a program's loop an endless one."""


def _alarm(*_: Any) -> None:
    raise TooLong


def try_program(seed: int, schedules: int, total: Counter[str]) -> bool:
    """Whether a program stays indistinguishable; adds what was done to ``total``."""
    one = program(seed)
    try:
        changes = possible_changes(one)
    except Exception:  # its world, written at random, does not run
        total["programs whose world fails"] += 1
        return True
    total["programs"] += 1
    rng = random.Random(seed)
    captured = False
    for number in range(schedules + 1):
        steps = [Step()] * 4 if number == 0 else random_schedule(one, rng, changes)
        signal.setitimer(signal.ITIMER_REAL, _SECONDS)
        try:
            report = run(one, steps)
        except TooLong:
            total["schedules without an end"] += 1
            continue
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
        total.update({
            "calls": report.calls, "changed calls": report.changed, "replays": report.hits, "schedules": 1,
            "changed calls where guards held": report.held, "changed calls where guards failed": report.failed,
            "recordings": report.recordings,
        })  # fmt: skip
        captured |= report.captured
        if report.differences and deterministic(one, steps):
            tell(report, number, steps, lambda s: run(one, s))
            return False
    total["programs captured"] += captured
    return True


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=0, help="of the first program")
    parser.add_argument("--programs", type=int, default=100)
    parser.add_argument("--schedules", type=int, default=3, help="of each program, after its steady calls")
    parser.add_argument("--show", type=int, help="print the program of this seed")
    options = parser.parse_args()
    if options.show is not None:
        print(source(options.show))
        return 0
    torch.set_num_threads(1)
    signal.signal(signal.SIGALRM, _alarm)
    total: Counter[str] = Counter()
    start = time.monotonic()
    seeds = range(options.seed, options.seed + options.programs)
    bad = [seed for seed in seeds if not try_program(seed, options.schedules, total)]
    print(", ".join(f"{v} {k}" for k, v in total.items()))
    print(f"{len(bad)} programs differ ({time.monotonic() - start:.0f} s): {bad}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
