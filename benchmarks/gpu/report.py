"""The command: ``python3 -m benchmarks.gpu.report --minutes 9`` runs tests and measurements, and writes a report.

It needs torch, Triton, numpy and pytest, and nothing from a network. Exit status: 0 everything ran and passed, 1 a test
failed, 2 there is no device or something did not run.
"""

from __future__ import annotations

import argparse
import datetime
import functools
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import IO

from benchmarks.gpu.child import Ran, end_all, run
from benchmarks.gpu.document import Document
from benchmarks.gpu.jobs import ROOT, Job, jobs, probe
from benchmarks.gpu.schedule import Schedule

_WORKERS = max(2, (os.cpu_count() or 1) * 3 // 4)


def commit() -> str:
    """Of the repository, and whether its files differ from it; a copy without git has none."""
    found = []
    for command in (["git", "rev-parse", "--short=12", "HEAD"], ["git", "status", "--porcelain", "--untracked-files=no"]):
        try:
            done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=30)
        except (OSError, subprocess.TimeoutExpired):
            return "unknown"
        if done.returncode != 0:
            return "unknown"
        found.append(done.stdout.strip())
    return found[0] + (" with changes" if found[1] else "")


def environment(device: str) -> dict[str, str]:
    """Of the children: the repository is importable, and its tests run on that device."""
    paths = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {
        "OMP_NUM_THREADS": "1",
        **os.environ,
        "PYTHONPATH": os.pathsep.join(paths),
        "MAGPY_GPU_TESTS": device,
        "PYTHONUNBUFFERED": "1",
    }


def _arguments(given: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python3 -m benchmarks.gpu.report", description=__doc__)
    parser.add_argument("--minutes", type=float, default=9.0, help="how long it may take (default: 9)")
    parser.add_argument("--device", default="cuda", help="cuda, or cpu to try the report itself (default: cuda)")
    parser.add_argument("--output", type=Path, default=ROOT / "artifacts" / "gpu", metavar="DIR",
                        help="where report.json, report.md and report.log go (default: artifacts/gpu)")  # fmt: skip
    parser.add_argument("--workers", type=int, default=_WORKERS,
                        help=f"tests at a time (default: {_WORKERS}, for three quarters of the cores)")  # fmt: skip
    parser.add_argument("--only", action="append", default=[], metavar="TEXT",
                        help="only the parts whose name contains TEXT; may be repeated")  # fmt: skip
    parser.add_argument("--commit", default="", help="of the repository, where the copy is without git")
    return parser.parse_args(given)


def _chosen(all_jobs: list[Job], only: Sequence[str]) -> list[Job]:
    return [job for job in all_jobs if not only or any(text in job.name for text in only)]


def main(given: Sequence[str] | None = None) -> int:
    args = _arguments(given)
    now = datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M UTC")
    document = Document(args.commit or commit(), now, args.minutes)
    args.output.mkdir(parents=True, exist_ok=True)
    with open(args.output / "report.log", "wb") as log:
        run_job = functools.partial(_logged, log=log, env=environment(args.device))

        def ended(ran: Ran) -> None:
            document.add(ran)
            document.write(args.output)
            counts = f", {sum(v.outcome == 'passed' for v in ran.verdicts.values())}/{len(ran.verdicts)} passed"
            told = f"{ran.job.name}: {ran.problem or 'complete'}{counts if ran.verdicts else ''}, {ran.seconds:.0f} s"
            print(told, flush=True)

        schedule = Schedule(run_job, ended, 60 * args.minutes, args.workers)
        beside, alone = (_chosen(group, args.only) for group in jobs(args.device))
        try:
            ended(run_job(probe(args.device), 60 * args.minutes))
            if document.device:
                schedule.run(beside, alone)
                document.not_run = [job.name for job in schedule.not_run]
        finally:
            end_all()
            document.is_over = bool(document.device)
            document.write(args.output)
    print(f"\n{(args.output / 'report.md').read_text(encoding='utf-8')}\nWritten to {args.output}")
    if document.bad:
        return 1
    return 2 if not document.device or document.problems or document.untested or document.not_run else 0


def _logged(job: Job, seconds: float, log: IO[bytes], env: dict[str, str]) -> Ran:
    return run(job, seconds, log, {"TORCHINDUCTOR_COMPILE_THREADS": str(job.compilers), **env})


if __name__ == "__main__":
    sys.exit(main())
