"""Random programs, each under random changes: ``python -m tests.soundness.generated.run --seed S --programs N``."""

from __future__ import annotations

import argparse
import random
import signal
import sys
import time
import traceback
from collections import Counter

import torch

from tests.soundness.fuzz import deterministic, possible_changes, random_schedule, tell
from tests.soundness.generated.writer import program
from tests.soundness.harness import Step, run


class TooLong(BaseException):
    """A schedule does not end."""


def _alarm(*_):
    raise TooLong


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--programs", type=int, default=100)
    parser.add_argument("--schedules", type=int, default=3)
    parser.add_argument("--show", action="store_true", help="print the program")
    options = parser.parse_args()
    signal.signal(signal.SIGALRM, _alarm)
    torch.set_num_threads(1)
    total: Counter[str] = Counter()
    bad = 0
    start = time.monotonic()
    reasons: Counter[str] = Counter()
    for seed in range(options.seed, options.seed + options.programs):
        p = program(seed)
        if options.show:
            print(p.source)
        try:
            changes = possible_changes(p)
        except Exception as error:
            total["programs that cannot be made"] += 1
            reasons["world: " + repr(error)[:100]] += 1
            continue
        rng = random.Random(seed)
        captured = False
        for n in range(options.schedules):
            steps = [Step()] * 4 if n == 0 else random_schedule(p, rng, changes)
            try:
                signal.setitimer(signal.ITIMER_REAL, 20)
                report = run(p, steps)
                signal.setitimer(signal.ITIMER_REAL, 0)
            except TooLong:
                print(p.name, n, "took too long", flush=True)
                total["too long"] += 1
                continue
            except Exception:
                print(f"{p.name}: the harness failed\n{traceback.format_exc()}", flush=True)
                total["failures of the harness"] += 1
                continue
            total.update(
                {
                    "calls": report.calls,
                    "changed": report.changed,
                    "hits": report.hits,
                    "recordings": report.recordings,
                    "held": report.held,
                    "failed": report.failed,
                }
            )
            captured |= report.hits > 0
            if n == 0:
                for f in report.findings:
                    if f.severity != "info" and report.hits == 0:
                        reasons[f.code + " " + f.message[:110]] += 1
            if report.differences:
                if not deterministic(p, steps):
                    total["eager differs"] += 1
                    continue
                bad += 1
                tell(report, n, steps, lambda s: run(p, s))
                break
        total["programs"] += 1
        total["captured"] += captured
    print(f"{time.monotonic() - start:.0f} s", dict(total), f"{bad} programs differ")
    for k, v in reasons.most_common(40):
        print(v, k)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
