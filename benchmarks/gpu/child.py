"""Runs one job in a child process and notes what it tells, however it ends. Key types: Ran, Verdict. Key functions: run,
end_all.

Each child is the leader of a process group, which is killed as a whole: compilers and data loaders start processes too.
"""

from __future__ import annotations

import os
import queue
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import IO, Any

from benchmarks.gpu.events import DESCRIPTOR, parsed
from benchmarks.gpu.jobs import ROOT, Job

_STARTING_S = 180.0  # until the first event: imports, the device's initialization, collecting tests
_KILLED_S = 20.0  # until a killed process group has closed the pipe
_END: dict[str, Any] = {"ended": True}
_running: set[int] = set()  # process groups


@dataclass(frozen=True)
class Verdict:
    """How a test ended: ``passed``, ``failed``, ``skipped``, ``crashed`` or ``too slow``."""

    outcome: str
    seconds: float = 0.0
    message: str = ""


@dataclass
class Ran:
    """``status``: of the process; None if it was killed for the time it took. ``is_cut``: the report's own time was over.
    ``remaining``: tests that it has not come to. ``problem``: why it is not complete, or empty. ``output``: its last
    line."""

    job: Job
    status: int | None = None
    is_cut: bool = False
    seconds: float = 0.0
    verdicts: dict[str, Verdict] = field(default_factory=dict)
    tables: list[dict[str, Any]] = field(default_factory=list)
    device: dict[str, Any] = field(default_factory=dict)
    tests: list[str] = field(default_factory=list)
    problem: str = ""
    output: str = ""

    @property
    def remaining(self) -> list[str]:
        return [test for test in self.tests if test not in self.verdicts]


class _Child:
    """A running job. ``ran`` is what is known of it; ``running``: the test that goes on."""

    def __init__(self, job: Job, output: IO[bytes], environment: Mapping[str, str]) -> None:
        self.ran = Ran(job)
        self.running = ""
        self.start = self.heard = time.monotonic()
        reading, writing = os.pipe()
        try:
            self.process = subprocess.Popen(
                job.command, cwd=ROOT, env={**environment, DESCRIPTOR: str(writing)}, stdin=subprocess.DEVNULL,
                stdout=output, stderr=subprocess.STDOUT, pass_fds=[writing], start_new_session=True,
            )  # fmt: skip
        finally:
            os.close(writing)
        _running.add(self.process.pid)
        self._events: queue.Queue[dict[str, Any]] = queue.Queue()
        self._reader = threading.Thread(target=self._read, args=(reading,), daemon=True)
        self._reader.start()
        threading.Thread(target=self._wait, daemon=True).start()

    def _read(self, descriptor: int) -> None:
        with os.fdopen(descriptor, "rb") as pipe:
            for line in pipe:
                self._events.put(parsed(line))

    def _wait(self) -> None:
        self.process.wait()
        self._events.put(_END)

    def listen(self, seconds: float) -> None:
        """Until the process has ended, its time or ``seconds`` are over, or it has been silent for too long."""
        job, has_begun = self.ran.job, False
        end = self.start + min(seconds, job.limit_s)
        while True:
            silent = self.heard + (job.silence_s if has_begun else max(job.silence_s, _STARTING_S))
            try:
                event = self._events.get(timeout=max(0.0, min(end, silent) - time.monotonic()))
            except queue.Empty:
                self.ran.is_cut = end <= silent and seconds <= job.limit_s
                break
            if event is _END:
                self.ran.status = self.process.returncode
                break
            has_begun = True
            self._hear(event)
        taken = time.monotonic() - self.start
        self._end_group()
        self.ran.seconds = round(taken, 1)
        self.ran.problem = self._problem(taken)

    def _end_group(self) -> None:
        """Nothing of it goes on: what it has told last is heard then."""
        _end(self.process.pid)
        _running.discard(self.process.pid)
        self._reader.join(_KILLED_S)
        while not self._events.empty():
            self._hear(self._events.get())

    def _hear(self, event: Mapping[str, Any]) -> None:
        ran, self.heard = self.ran, time.monotonic()
        if "tests" in event:
            ran.tests = list(event["tests"])
        elif "outcome" in event:
            self.running = ""
            ran.verdicts[event["test"]] = Verdict(event["outcome"], event["seconds"], event["message"])
        elif "test" in event:
            self.running = event["test"]
        elif "table" in event:
            ran.tables.append(event["table"])
        elif "device" in event:
            ran.device = dict(event["device"])

    def _problem(self, taken: float) -> str:
        """Why it is not complete. Unless the time was over, the test that was running is what ended it."""
        status, are_tests = self.ran.status, self.ran.job.are_tests
        if status is None:
            text = f"killed after {taken:.0f} s"
        elif status < 0:
            text = f"ended by signal {-status} ({signal.strsignal(-status)})"
        else:
            text = f"exit status {status}"
        if self.running and not self.ran.is_cut:
            outcome = "too slow" if status is None else "crashed"
            self.ran.verdicts[self.running] = Verdict(outcome, round(time.monotonic() - self.heard, 1), text)
        is_complete = status in ((0, 1) if are_tests else (0,)) and not self.running and not self.ran.remaining
        return "" if is_complete else text


def _end(group: int) -> None:
    with suppress(ProcessLookupError):
        os.killpg(group, signal.SIGKILL)


def end_all() -> None:
    """Kills what runs: the report is interrupted."""
    for group in list(_running):
        _end(group)


def run(job: Job, seconds: float, log: IO[bytes], environment: Mapping[str, str]) -> Ran:
    """Runs ``job`` for at most ``seconds``. Its output goes to ``log`` once it has ended."""
    with tempfile.TemporaryFile() as output:
        child = _Child(job, output, environment)
        child.listen(seconds)
        output.seek(0)
        text = output.read()
    ran = child.ran
    lines = [line for line in text.decode(errors="replace").splitlines() if line.strip()]
    ran.output = lines[-1].strip() if lines else ""
    log.write(f"\n==== {job.name}: {ran.problem or 'complete'}, {ran.seconds} s\n".encode() + text)
    log.flush()
    return ran
