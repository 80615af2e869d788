"""Command line: runs a sweep over architectures of transformers, or reports on one."""

from __future__ import annotations

import argparse
import platform
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

from benchmarks.sweeps.engines import ENGINES
from benchmarks.sweeps.parent import read, sweep
from benchmarks.transformers_sweep.report import markdown
from benchmarks.transformers_sweep.zoo import ZOO

_HEADER = """# transformers: one complete graph per architecture

Written by `python -m benchmarks.transformers_sweep --markdown FILE`. Tiny random configurations, `backend="eager"`,
`fullgraph=True`, eval and train mode, each call followed by a backward pass, three calls on fresh inputs; outputs, arguments
afterwards, gradients, module state and the random state compared with eager (tolerance 1e-4, types and dtypes strict).
Architectures that eager mode cannot run here, or runs differently each time, are not counted. The table compares the
engines on what both have run; the lists below it have everything that ran.

transformers {transformers}, torch {torch}, Python {python}, CPU.

"""


def _print_progress(record: dict[str, Any]) -> None:
    if record.get("status"):  # the process for the architecture's cases failed
        print(f"{record['done']}: {record['status']}: {record.get('reason', '')}", flush=True)
    for engine in ENGINES:
        verdict = record.get(engine)
        if verdict is not None and verdict["status"] != "complete":
            print(
                f"{record['case']} {record['mode']} {engine}: {verdict['status']}: {verdict.get('reason', '')[:300]}",
                flush=True,
            )


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.transformers_sweep", description=__doc__)
    parser.add_argument(
        "--results", type=Path, default=Path("artifacts/transformers.jsonl"), help="continued by a later run"
    )
    parser.add_argument("--slice", default=":", metavar="A:B", help="which of the architectures")
    parser.add_argument("--only", help="comma-separated names of architectures")
    parser.add_argument("--engine", action="append", choices=ENGINES, help="default: both")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--report", action="store_true", help="run nothing, report on the existing results")
    parser.add_argument("--markdown", type=Path, help="write the report there")
    args = parser.parse_args()
    names = list(ZOO) if args.only is None else args.only.split(",")
    if unknown := [name for name in names if name not in ZOO]:
        parser.error(f"no such architectures: {', '.join(unknown)}; there are: {', '.join(ZOO)}")
    start, _, stop = args.slice.partition(":")
    names = names[int(start or 0) : int(stop) if stop else None]
    if not args.report:
        args.results.parent.mkdir(parents=True, exist_ok=True)
        requests = [
            {"name": f"{name} {engine}", "architecture": name, "engine": engine}
            for name in names
            for engine in args.engine or ENGINES
        ]
        sweep("benchmarks.transformers_sweep.nest", requests, args.results, args.jobs, _print_progress)
    versions = {"transformers": version("transformers"), "torch": version("torch"), "python": platform.python_version()}
    page = _HEADER.format(**versions) + markdown(read(args.results))
    print(page)
    if args.markdown:
        args.markdown.write_text(page)
    return 0


if __name__ == "__main__":
    sys.exit(main())
