"""Command line: runs a sweep over a checkout of ParityBench, or reports on one."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from benchmarks.paritybench.report import markdown
from benchmarks.paritybench.sweep import public_files, read, sweep


def _print_progress(record: dict[str, Any]) -> None:
    if "done" in record:
        print(f"{record['done']}: {record.get('import_error') or record.get('reason') or record.get('cases')}", flush=True)
        return
    for engine in ("magpy", "dynamo"):
        verdict = record.get(engine)
        if verdict is not None and verdict["status"] not in ("complete", "eager failed", "not deterministic"):
            print(f"  {record['case']} {record['name']} {engine}: {verdict['status']}: {verdict.get('reason', '')[:160]}")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.paritybench", description=__doc__)
    parser.add_argument("checkout", type=Path, nargs="?", help="a checkout of jansel/pytorch-jit-paritybench")
    parser.add_argument("--results", type=Path, default=Path("artifacts/paritybench.jsonl"), help="continued by a later run")
    parser.add_argument(
        "--slice", default=":", metavar="A:B", help="which of the public files, in the order of their hashes"
    )
    parser.add_argument("--file", help="only the file with this in its name")
    parser.add_argument("--case", type=int, help="only this case of each file")
    parser.add_argument("--engine", action="append", choices=("magpy", "dynamo"), help="default: both")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--markdown", type=Path, help="write the report there")
    args = parser.parse_args()
    engines = args.engine or ["magpy", "dynamo"]
    args.results.parent.mkdir(parents=True, exist_ok=True)
    if args.checkout is not None:
        start, _, stop = args.slice.partition(":")
        files = public_files(args.checkout)[int(start or 0) : int(stop) if stop else None]
        if args.file:
            files = [path for path in files if args.file in path.name]
        if not files:
            parser.error("no such files")
        sweep(files, args.results, engines, args.jobs, args.case, _print_progress)
    records = read(args.results)
    page = markdown(records, engines)
    print(page)
    if args.markdown:
        args.markdown.write_text(page)
    return 0


if __name__ == "__main__":
    sys.exit(main())
