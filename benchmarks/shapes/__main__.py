"""Command line: `python -m benchmarks.shapes [NAME ...]` trains each architecture on ten shapes.

Each has a process of its own. *graphs*: how many were captured (MagPy), or compiled (``torch.compile(dynamic=None)``);
goal: at most two. *time*: of forward and backward passes over all shapes, compiled, over eager's; the fastest of interleaved
rounds.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from math import prod
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.shapes.architectures import ARCHITECTURES
from benchmarks.timing import user_environment

ROOT = Path(__file__).resolve().parents[2]
_MOST_GRAPHS = 2
_MOST_ERROR = 5e-3


def in_child(name: str, backend: str) -> dict[str, Any]:
    env = {"OMP_NUM_THREADS": "1", "TORCHINDUCTOR_COMPILE_THREADS": "1", **user_environment()}
    command = [sys.executable, "-m", "benchmarks.shapes.measure", name, backend]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, cwd=ROOT, env=env, check=False)
    if done.returncode != 0:
        return {"name": name, "error": (done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[-1]}
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def _mean(values: list[float]) -> float:
    return prod(values) ** (1 / len(values))


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.shapes", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(ARCHITECTURES)}")
    parser.add_argument("--backend", choices=("inductor", "eager"), default="inductor")
    parser.add_argument("--json", type=Path, help="write the results there as well")
    args = parser.parse_args()
    if unknown := [name for name in args.names if name not in ARCHITECTURES]:
        parser.error(f"no such architectures: {', '.join(unknown)}")
    table = Table(
        "architecture", "eager ms", "graphs: torch.compile", "MagPy", "time: torch.compile", "MagPy", "served", "error"
    )
    console = Console(width=120)
    results, missed = [], 0
    for name in args.names or ARCHITECTURES:
        found = in_child(name, args.backend)
        results.append(found)
        console.print(json.dumps(found), soft_wrap=True)
        if "error" in found:
            table.add_row(name, found["error"])
            missed += 1
            continue
        theirs, ours = found["torch.compile"], found["MagPy"]
        missed += ours["graphs"] > _MOST_GRAPHS or ours["error"] > _MOST_ERROR
        table.add_row(
            name, f"{found['eager']['ms']:.2f}", str(theirs["graphs"]), str(ours["graphs"]), f"{theirs['ratio']:.2f}",
            f"{ours['ratio']:.2f}", f"{ours['served']:.0%}", f"{ours['error']:.0e}",
        )  # fmt: skip
    whole = [found for found in results if "error" not in found]
    if whole:
        means = [_mean([found[key]["ratio"] for found in whole]) for key in ("torch.compile", "MagPy")]
        table.add_row("geometric mean", "", "", "", *(f"{mean:.2f}" for mean in means))
    console.print(table)
    if args.json:
        args.json.write_text(json.dumps(results, indent=1))
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
