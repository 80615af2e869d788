"""Changes between calls of real modules: ``python -m tests.soundness.parity CHECKOUT --files N --seed S``.

CHECKOUT is one of ``jansel/pytorch-jit-paritybench``, read in place; only its public half is looked at. Every case runs in a
child process: the file's source is executed twice, so that the two worlds share no class, both modules are built from
the same seed, and schedules of random changes (attributes, parameters, modes, hooks, methods, arguments, the interpreter's
state) run on both. A case whose two plain worlds differ is not deterministic and left out. Key functions: sample, run_case.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks.paritybench.stand_ins import import_case_file
from benchmarks.paritybench.sweep import public_files
from benchmarks.sweeps.child import Verdict, forked, limit
from tests.soundness.fuzz import Changes, possible_changes, random_schedule
from tests.soundness.harness.batch import shortest
from tests.soundness.harness.run import Report, Step, run
from tests.soundness.harness.world import Program, World


@dataclass(frozen=True)
class CaseProgram(Program):
    """A case of a file as a program: the region is a built module, the arguments are made by the case."""

    path: Path = Path()
    number: int = 0

    def execute(self, world: World) -> None:
        """The file's own import, in a module of this world's; then the case's module."""
        module, _ = import_case_file(self.path)
        cls, init, forward = module.TESTCASES[self.number][:3]
        torch.manual_seed(1)
        random.seed(1)
        np.random.seed(1)
        args, kwargs = init()
        built = cls(*args, **kwargs)
        built.eval()
        world.module, world.namespace = module, module.__dict__

        def arguments(i: int) -> Any:
            torch.manual_seed(100 + i)
            return forward()

        world.namespace.update(region=built, args=arguments)

    def roots(self, world: World) -> dict[str, Any]:
        """The module, and the file's classes that its parts are of."""
        region = world.namespace["region"]
        classes = {cls.__name__: cls for part in region.modules() for cls in type(part).__mro__}
        return {"region": region, **{n: c for n, c in classes.items() if c.__module__ == world.module.__name__}}

    def visible(self, world: World) -> dict[str, Any]:
        return {"seen_by_modes": world.namespace.get("seen_by_modes"), **self.roots(world)}


def program_of(path: Path, number: int) -> CaseProgram:
    name = f"{path.stem}:{number}"
    return CaseProgram(name, path.read_text(), str(path), 0, frozenset(), "", path, number)


def run_case(path: Path, number: int, seed: int, schedules: int, seconds: float) -> Verdict:
    """Some schedules on one case: counts, and the differences with what repeats them."""
    limit()
    program = program_of(path, number)
    try:
        eager = run(program, [Step()] * 3, compiler=lambda target: target)
    except Exception as error:
        return {"skipped": f"{type(error).__name__}: {error}"[:200]}
    if eager.differences:
        return {"skipped": "not deterministic"}
    known = possible_changes(program)
    total: Counter[str] = Counter()
    kinds: Counter[str] = Counter()
    differences: list[Any] = []
    start = time.monotonic()
    for n in range(schedules):
        if time.monotonic() - start > seconds:
            break
        draw = f"{program.name} {seed} {n}"
        report = run(program, random_schedule(program, random.Random(draw), known))
        total.update(
            calls=report.calls, changed=report.changed, replays=report.hits, recordings=report.recordings,
            held=report.held, failed=report.failed, schedules=1,
        )  # fmt: skip
        kinds += report.kinds
        if report.differences:
            differences += _explained(program, draw, known, report)
    return {"total": dict(total), "kinds": dict(kinds), "differences": differences}


def _explained(program: Program, draw: str, known: Changes, report: Report) -> list[Any]:
    """A difference with the shortest steps that show it; none when two plain worlds differ by the same steps."""
    steps = random_schedule(program, random.Random(draw), known)
    if any(run(program, steps, compiler=lambda target: target).differences for _ in range(3)):
        return []
    short = run(program, shortest(steps, lambda s: bool(run(program, s).differences)))
    what = (short.differences or report.differences)[:3]
    return [{"draw": draw, "trail": short.trail, "what": what}]


def sample(checkout: Path, files: int, skip: int) -> list[tuple[Path, int]]:
    """The first two cases of each of some public files, in the order of their hashes."""
    chosen = []
    for path in public_files(checkout)[skip : skip + files]:
        chosen += [(path, n) for n in range(min(2, path.read_text().count("lambda: ([") // 2))]
    return chosen


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkout", type=Path)
    parser.add_argument("--files", type=int, default=20)
    parser.add_argument("--skip", type=int, default=0, help="files of the public half to leave out first")
    parser.add_argument("--schedules", type=int, default=6)
    parser.add_argument("--seconds", type=float, default=40.0, help="a case's schedules stop after this")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    torch.set_num_threads(1)
    total: Counter[str] = Counter()
    kinds: Counter[str] = Counter()
    differences = 0
    for path, number in sample(options.checkout, options.files, options.skip):
        answer = forked(
            lambda p=path, n=number: run_case(p, n, options.seed, options.schedules, options.seconds),  # type: ignore[misc]
            wall=options.seconds * 4,
        )
        if "total" not in answer:
            total["cases left out"] += 1
            if answer.get("status") in ("crash", "hang"):
                differences += 1
                print(f"{path.stem}:{number}: {answer}", flush=True)
            continue
        total += Counter(answer["total"])
        total["cases"] += 1
        kinds += Counter(answer["kinds"])
        for found in answer["differences"]:
            differences += 1
            print(f"drawn by {found['draw']!r}:", flush=True)
            for line in [*found["trail"], *found["what"]]:
                print("    " + line[:300], flush=True)
    print("; ".join(f"{count} {kind}" for kind, count in kinds.most_common(40)))
    total["kinds of change"] = len(kinds)
    print(", ".join(f"{v} {k}" for k, v in total.items()))
    print(f"{differences} differences (seed {options.seed})")
    return 1 if differences else 0


if __name__ == "__main__":
    sys.exit(main())
