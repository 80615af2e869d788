"""Command line of the benchmarks: each one runs in a fresh process, so that first calls are measured as first calls.

Exit status: 1 if a target is missed, 2 if a benchmark could not run.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import platform
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

from rich.console import Console
from rich.table import Table

import magpy_core
from benchmarks.never_slower.programs import PROGRAMS
from benchmarks.result import Result
from benchmarks.whole_step.programs import PROGRAMS as STEPS

ROOT = Path(__file__).resolve().parents[1]
BENCHMARKS = {
    "replay_mlp50": "benchmarks.replay",
    "replay_sequential50": "benchmarks.replay",
    "replay_mlp3": "benchmarks.replay",
    "guards_bert": "benchmarks.guards",
    "guards_gpt48": "benchmarks.guards",
    "monitored_step": "benchmarks.monitored",
    **{f"whole_step_{name}": "benchmarks.whole_step.measure" for name in STEPS},
    "check_char_gpt": "benchmarks.monitored",
    **{f"never_slower_{name}": "benchmarks.never_slower.measure" for name in [*PROGRAMS, "findings", "second_runs"]},
    "compile_blocks": "benchmarks.blocks",
    "import_magpy": "benchmarks.startup",
    "cli_help": "benchmarks.startup",
    "server_start": "benchmarks.startup",
    "lsp_squiggles": "benchmarks.lsp",
    "lsp_edits": "benchmarks.lsp",
    "lsp_cancel": "benchmarks.lsp",
}


def _called(name: str) -> list[str]:
    return [known for known in BENCHMARKS if known == name or known.startswith(f"{name}_")]


def in_child(name: str) -> Result:
    """Runs one benchmark in a separate process and reads its result from a pipe."""
    read, write = os.pipe()
    with os.fdopen(read, "rb") as answer:
        command = [sys.executable, "-m", "benchmarks", "--child", name, "--answer-fd", str(write)]
        process = subprocess.Popen(command, pass_fds=[write], cwd=ROOT, env={"OMP_NUM_THREADS": "1", **os.environ})
        os.close(write)
        body = answer.read()
        if process.wait() != 0:
            raise RuntimeError(f"benchmark {name} exited with status {process.returncode}")
    return Result.from_json(json.loads(body))


def as_child(name: str, descriptor: int) -> None:
    result: Result = getattr(importlib.import_module(BENCHMARKS[name]), name)()
    with os.fdopen(descriptor, "w") as answer:
        json.dump(result.to_json(), answer)


def machine() -> dict[str, str | int | None]:
    return {
        "python": platform.python_version(),
        "torch": version("torch"),
        "magpy": magpy_core.__version__,
        "platform": platform.platform(),
        "processor": platform.processor() or platform.machine(),
        "cores": os.cpu_count(),
    }


def show(results: dict[str, Result]) -> None:
    table = Table(title="MagPy benchmarks (ratios: min / median over interleaved rounds)")
    for column, justify in (("what", "left"), ("measured", "right"), ("target", "right"), ("", "left"), ("detail", "left")):
        table.add_column(column, justify=justify)  # type: ignore[arg-type]
    for result in results.values():
        for row in result.rows:
            target = f"≤ {row.shown(row.target)}" if row.target is not None else ""
            table.add_row(row.what, row.shown(row.value), target, row.verdict, row.detail)
    Console(width=None if sys.stdout.isatty() else 180).print(table)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"which to run (default: all): {', '.join(BENCHMARKS)}")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write rows and every sample to FILE")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    parser.add_argument("--answer-fd", type=int, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.child:
        as_child(args.child, args.answer_fd)
        return 0
    # a name selects all benchmarks with that prefix: `guards`, `replay`
    args.names = [known for name in args.names for known in _called(name) or [name]]
    if unknown := [name for name in args.names if name not in BENCHMARKS]:
        parser.error(f"no benchmark is called {', '.join(unknown)}; there are: {', '.join(BENCHMARKS)}")

    results: dict[str, Result] = {}
    failed: list[str] = []
    for name in args.names or BENCHMARKS:
        print(f"{name} ...", file=sys.stderr, flush=True)
        try:
            results[name] = in_child(name)
        except RuntimeError as error:
            print(error, file=sys.stderr)
            failed.append(name)
    show(results)
    if args.json:
        document = {"machine": machine(), "failed": failed, "results": {k: r.to_json() for k, r in results.items()}}
        args.json.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
    if failed:
        return 2
    return int(any(row.met is False for result in results.values() for row in result.rows))


if __name__ == "__main__":
    sys.exit(main())
