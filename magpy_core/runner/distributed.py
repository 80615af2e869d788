"""Runs several processes under ``torch.distributed.run`` as one run. Key names: launch_ranks, RanksHandle.

Each rank is a run of its own (see ``rank``) that writes its messages to a file; this side reads the files, and merges what
the ranks found: a finding that not every rank has says which ones have it. Imports no torch.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import asdict, replace
from typing import Any

from magpy_core.findings import Finding, Report
from magpy_core.runner import rank as rank_module
from magpy_core.runner.launch import RunBase, output_target, pump_output
from magpy_core.runner.protocol import Message
from magpy_core.runner.request import Kind, Outcome, RunRequest
from magpy_core.runner.supervise import end_tree

_POLL = 0.1
_ORDER: tuple[Kind, ...] = ("tool-error", "bad-entrypoint", "failed", "killed", "timeout", "cancelled", "ok")
_SAME_FIELDS = ("mode", "script", "module", "args", "steps", "timeout", "backend", "cache_limit", "regions", "call_policy",
                "stop_grace", "details", "session_factory")  # fmt: skip


def launch_ranks(request: RunRequest, nproc: int) -> RanksHandle:
    """Starts ``request`` in ``nproc`` processes on this machine."""
    return RanksHandle(request, nproc)


class RanksHandle(RunBase):
    """Like a RunHandle: messages (steps are those of rank 0), then ``outcome``; ``cancel`` and ``interrupt``."""

    def __init__(self, request: RunRequest, nproc: int) -> None:
        self.request = request
        self._nproc = nproc
        self._folder = tempfile.mkdtemp(prefix="magpy-ranks-")
        self._outcomes: dict[int, Outcome] = {}
        self._outcome: Outcome | None = None
        self._ended = ""
        self._process: subprocess.Popen[bytes] | None = None
        self._pumps: list[threading.Thread] = []
        self._why_not = self._start()
        self._stream = self._run()

    def _start(self) -> str:
        """Starts the launcher; returns an error message if that fails."""
        request = self.request
        wanted = {name: value for name, value in asdict(replace(request, stdout="inherit", stderr="inherit")).items()
                  if name in _SAME_FIELDS}  # fmt: skip
        with open(os.path.join(self._folder, "request.json"), "w", encoding="utf-8") as stream:
            json.dump({**wanted, "parent": os.getpid()}, stream)
        command = [
            request.python or sys.executable, "-m", "torch.distributed.run", "--standalone", "--max-restarts=0",
            f"--nproc-per-node={self._nproc}", os.path.abspath(rank_module.__file__), self._folder,
        ]  # fmt: skip
        try:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output_target(request.stdout),
                stderr=output_target(request.stderr),
                cwd=request.cwd,
                env={"OMP_NUM_THREADS": "1", **(request.env or os.environ)},
                start_new_session=True,
            )
        except OSError as error:
            return f"{command[0]} can't be started ({error.strerror or error}): choose a Python interpreter with --python."
        for pipe, sink in ((self._process.stdout, request.stdout), (self._process.stderr, request.stderr)):
            if pipe is not None and callable(sink):
                thread = threading.Thread(target=pump_output, args=(pipe.fileno(), sink), daemon=True, name="magpy-output")
                thread.start()
                self._pumps.append(thread)
        return ""

    def _run(self) -> Iterator[Message]:
        try:
            if self._process is not None:
                yield from self._messages(self._process)
            self._outcome = self._merged()
        finally:
            self.close()

    def _messages(self, process: subprocess.Popen[bytes]) -> Iterator[Message]:
        offsets = [0] * self._nproc
        ended = False
        while True:
            for number in range(self._nproc):
                for message in self._read(number, offsets):
                    if message["type"] == "outcome":
                        self._outcomes[number] = _outcome(message)
                    elif message["type"] != "step" or number == 0:
                        yield message
            if ended:
                return
            ended = process.poll() is not None  # then read the files once more
            if not ended:
                time.sleep(_POLL)

    def _read(self, number: int, offsets: list[int]) -> list[Any]:
        """The new complete lines in a rank's file."""
        try:
            with open(os.path.join(self._folder, f"rank{number}.jsonl"), "rb") as stream:
                stream.seek(offsets[number])
                data = stream.read()
        except FileNotFoundError:
            return []
        whole = data[: data.rfind(b"\n") + 1]
        offsets[number] += len(whole)
        return [json.loads(line) for line in whole.splitlines()]

    def _merged(self) -> Outcome:
        if not self._outcomes:
            text = self._why_not or (
                "torch.distributed.run ended before any process of the program began: see what it wrote."
            )
            kind: Kind = "cancelled" if self._ended else "tool-error"
            return Outcome(kind, None, None, "" if self._ended else text, Report(self.request.entrypoint))
        lost = [n for n in range(self._nproc) if n not in self._outcomes]
        report = merge_ranks({n: o.report for n, o in sorted(self._outcomes.items())}, self._nproc)
        number, worst = min(self._outcomes.items(), key=lambda item: (_ORDER.index(item[1].kind), item[0]))
        if self._ended and worst.kind in ("cancelled", "killed", "ok"):
            return Outcome("cancelled", None, None, "The run was cancelled.", report)
        if worst.kind in ("cancelled", "ok") and lost:
            text = f"Rank {lost[0]} was killed before it could report: find out what killed it, and run again."
            return Outcome("killed", None, None, text, report)
        message = f"Rank {number}: {worst.message}" if worst.message else ""
        return replace(worst, message=message, report=report)

    def interrupt(self) -> None:
        """Interrupts the launcher, which interrupts every rank."""
        self._ended = "interrupt"
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(signal.SIGINT)

    def cancel(self, *, wait: bool = True) -> None:
        self._ended = "cancel"
        if self._process is None or self._process.poll() is not None:
            return
        if wait:
            end_tree(self._process.pid, term_grace=1.5)
        else:
            grace = {"term_grace": 1.5}
            threading.Thread(target=end_tree, args=(self._process.pid,), kwargs=grace, daemon=True, name="magpy-end").start()

    def close(self) -> None:
        if self._process is not None:
            if self._process.poll() is None:
                self.cancel()
                self._process.wait()
            for thread in self._pumps:
                thread.join(1.0)
            for pipe in (self._process.stdout, self._process.stderr):
                if pipe is not None:
                    pipe.close()
        shutil.rmtree(self._folder, ignore_errors=True)


def merge_ranks(reports: dict[int, Report], nproc: int) -> Report:
    """One report: all regions (rank 0's first), and each finding once, with its ranks unless all have it."""
    merged: Report | None = None
    ranks: dict[Any, list[int]] = {}
    findings: dict[Any, Finding] = {}
    for number, report in reports.items():
        if merged is None:
            merged = replace(report, regions=list(report.regions), findings=[], timings=dict(report.timings))
        known = {region.id for region in merged.regions}
        merged.regions += [region for region in report.regions if region.id not in known]
        merged.timings["total"] = max(merged.timings.get("total", 0.0), report.timings.get("total", 0.0))
        for finding in report.findings:
            ranks.setdefault(finding.key, []).append(number)
            before = findings.setdefault(finding.key, finding)
            findings[finding.key] = replace(before, count=max(before.count, finding.count))
    assert merged is not None
    merged.findings = [
        found if len(ranks[key]) == nproc else replace(found, ranks=tuple(ranks[key])) for key, found in findings.items()
    ]
    return merged


def _outcome(data: dict[str, Any]) -> Outcome:
    return Outcome(data["kind"], data["exit_code"], data["signal"], data["message"], Report.from_json(data["report"]))
