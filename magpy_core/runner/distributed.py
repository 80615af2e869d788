"""Runs several processes under ``torch.distributed.run`` as one run. Key name: RanksHandle.

Each rank is a program like that of any run, with named pipes instead of inherited ones. The ranks' reports are merged: a
finding that not every rank has lists the ranks that have it.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from magpy_core.findings import Finding, Report
from magpy_core.findings.explanation import explain
from magpy_core.runner import bootstrap
from magpy_core.runner.handle import Program, RunHandle
from magpy_core.runner.protocol import Message
from magpy_core.runner.request import Kind, Outcome, RunRequest

_ORDER: tuple[Kind, ...] = ("tool-error", "bad-entrypoint", "failed", "killed", "timeout", "cancelled", "ok")


class RanksHandle(RunHandle):
    """A run of several ranks. Its messages are those of rank 0 and the other ranks' findings; ``interrupt`` ends the run."""

    def __init__(self, request: RunRequest, nproc: int) -> None:
        self._nproc = nproc
        self._folder = tempfile.mkdtemp(prefix="magpy-ranks-")
        env = {"OMP_NUM_THREADS": "1", **(os.environ if request.env is None else request.env)}
        super().__init__(replace(request, env=env, stdin="null"))

    def _connect(self, python: str) -> tuple[list[str], tuple[int, ...]]:
        pipes = [os.path.join(self._folder, name) for name in ("commands", "messages")]
        for rank in range(self._nproc):
            for pipe in pipes:
                os.mkfifo(f"{pipe}{rank}")
            # Opened for both directions, so that opening doesn't wait, and there is no end of file before a rank has begun.
            self._programs.append(Program(self.request, *(os.open(f"{pipe}{rank}", os.O_RDWR) for pipe in pipes)))
        launcher = bootstrap.module_command(python, "torch.distributed.run")
        launcher += ["--standalone", "--max-restarts=0", f"--nproc-per-node={self._nproc}"]
        # Run through `env`: the launcher's summary names the failed command, which should not be the text after `python -c`.
        return [*launcher, "--no-python", "/usr/bin/env", *bootstrap.command(python, *pipes)], ()

    def _passes_on(self, program: Program, message: Message) -> bool:
        return program is self._programs[0] or message["type"] == "finding"

    def _finish(self) -> Iterator[Message]:
        if self._refusal is not None:
            yield from super()._finish()
            return
        outcomes: dict[int, Outcome] = {}
        for number, program in enumerate(self._programs):
            if program.collector.has_begun:
                owed, outcomes[number] = program.finish(self._t0)
                yield from (message for message in owed if message["type"] == "finding")
        self._outcome = self._merged(outcomes)

    def _merged(self, outcomes: dict[int, Outcome]) -> Outcome:
        if not outcomes:
            report = Report(self.request.entrypoint)
            if self._ended == "cancelled":
                return Outcome("cancelled", None, None, "", report)
            text = "torch.distributed.run ended before any process of the program began: see its output."
            return Outcome("tool-error", None, None, text, report)
        report = merge_ranks({number: outcome.report for number, outcome in outcomes.items()}, self._nproc)
        number, worst = min(outcomes.items(), key=lambda item: (_ORDER.index(item[1].kind), item[0]))
        lost = [n for n in range(self._nproc) if n not in outcomes]
        if self._ended == "itself" and worst.kind in ("cancelled", "ok") and lost:
            text = f"Rank {lost[0]} was killed before it could report: find out what killed it, and run again."
            return Outcome("killed", None, None, text, report)
        message = worst.message if worst.kind in ("cancelled", "ok") else f"Rank {number}: {worst.message}"
        return replace(worst, message=message, report=report)

    def interrupt(self) -> None:
        self.cancel(wait=False)

    def close(self) -> None:
        super().close()
        shutil.rmtree(self._folder, ignore_errors=True)


def merge_ranks(reports: dict[int, Report], nproc: int) -> Report:
    """One report: all regions (rank 0's first), and each finding once, with its ranks unless all have it."""
    first = next(iter(reports.values()))
    merged = replace(first, regions=[], findings=[], timings=dict(first.timings))
    ranks: dict[Any, list[int]] = {}
    findings: dict[Any, Finding] = {}
    for number, report in reports.items():
        known = {region.id for region in merged.regions}
        merged.regions += [region for region in report.regions if region.id not in known]
        merged.timings["total"] = max(merged.timings.get("total", 0.0), report.timings.get("total", 0.0))
        for finding in report.findings:
            ranks.setdefault(finding.key, []).append(number)
            before = findings.setdefault(finding.key, finding)
            findings[finding.key] = replace(before, count=max(before.count, finding.count))
    merged.findings = [
        found if len(ranks[key]) == nproc else replace(found, ranks=tuple(ranks[key])) for key, found in findings.items()
    ]
    merged.why_not = explain(merged)
    return merged
