"""Determines a run's Outcome from its messages. Key type: Collector. Runs in the parent, without torch."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Sequence
from typing import Any, Literal

from magpy_core._compat.code_cache import CodeCache, usual_folder
from magpy_core.findings import Finding, Location, Position, Range, RegionSummary, Report
from magpy_core.findings.explanation import explain
from magpy_core.limits import LIMITS
from magpy_core.runner.protocol import Captured, Done, Exit, Failed, Message, too_long
from magpy_core.runner.request import Kind, Outcome, RunRequest
from magpy_core.runner.tracebacks import is_user

Ended = Literal["itself", "timeout", "cancelled"]

_DUMPED_FRAME = re.compile(r'^  File "(?P<file>.+)", line (?P<line>\d+) in (?P<function>.+)$')
_KINDS: dict[str, Kind] = {"MP908": "bad-entrypoint", "MP903": "tool-error", "MP901": "tool-error", "MP910": "tool-error"}
_ADVICE = {
    signal.SIGKILL: "the system may have run out of memory: try a smaller batch, or find out what killed it",
    signal.SIGSEGV: "native code crashed: run `python -X faulthandler` to see where",
    signal.SIGABRT: "native code aborted: its last lines on stderr say why",
    signal.SIGBUS: "native code crashed: shared memory may be full (DataLoader workers use /dev/shm)",
    signal.SIGFPE: "native code crashed: run `python -X faulthandler` to see where",
    signal.SIGILL: "a library was built for another processor: install one built for this machine",
}
_CRASHES = (signal.SIGSEGV, signal.SIGBUS, signal.SIGILL, signal.SIGFPE, signal.SIGABRT)


class Collector:
    """Collects a run's messages. ``take`` returns those to pass on; ``finish`` determines the outcome and adds findings."""

    def __init__(self, request: RunRequest) -> None:
        self.request = request
        self.pid: int | None = None
        self.steps = 0
        self.stopping = False
        self.interrupted = False  # by the user's Ctrl-C
        self.lowering = False  # the program's code has ended; what it captured is compiled for the request's target
        self.extra = 0.0  # seconds beyond the time limit: the program's code has ended, and the run waits for a cause
        self._captured: Captured | None = None
        self._ended: Ended = "itself"
        self._failed: Failed | None = None
        self._done: Done | None = None
        self._exit: Exit | None = None
        self._findings: dict[Any, Finding] = {}
        self._regions: dict[str, RegionSummary] = {}

    @property
    def has_begun(self) -> bool:
        """Whether the program's interpreter has sent its first message."""
        return self.pid is not None or self._failed is not None

    def take(self, message: Message) -> Message | None:
        """Records ``message``; returns it if the caller should get it now."""
        if message["type"] == "exit":
            self._exit = message
            return None
        if message["type"] == "done":
            self._done = message
            return None
        try:
            if message["type"] == "finding":
                finding = Finding.from_json(message["finding"])
                self._findings[finding.key] = finding
            elif message["type"] == "region":
                region = RegionSummary.from_json(message["region"])
                self._regions[region.id] = region
        except (KeyError, TypeError, ValueError, AttributeError):
            return None  # not our message: the program wrote to our descriptor
        if message["type"] == "hello":
            self.pid = message["pid"]
        elif message["type"] == "step":
            self.steps = message["n"]
        elif message["type"] == "stopping":
            self.stopping = True
        elif message["type"] == "lowering":
            self.lowering = True
        elif message["type"] == "tracing":
            self.extra = min(max(0.0, message["seconds"]), LIMITS.bisect_at_end)
        elif message["type"] == "captured":
            self._captured = message
        elif message["type"] == "failed" and self._failed is None:
            self._failed = message
        return message

    def _report(self) -> Report:
        for message in (self._done, self._captured):
            if message is None:
                continue
            try:
                return Report.from_json(message["report"])
            except (KeyError, TypeError, ValueError, AttributeError):
                pass  # as above; use the streamed findings
        return Report(self.request.entrypoint, list(self._regions.values()), list(self._findings.values()))

    def ending(self, why: Ended) -> None:
        """Records why the program is about to be ended, if it has not ended yet."""
        if self._exit is None and self._ended == "itself":
            self._ended = why

    def finish(
        self, timings: dict[str, float], noise: list[str], left_out: Sequence[int] = ()
    ) -> tuple[list[Message], Outcome]:
        """The remaining messages for the caller (the runner's findings, then ``done``), and the outcome. ``left_out``: sizes
        of messages that were too long."""
        report = self._report()
        report.timings = {**timings, **report.timings}
        report.steps = self.steps
        report.stopped_after = self.request.steps if self.stopping and self.request.steps else None
        kind, code, message, place = self._decide(noise, report)
        own = [] if code is None else [Finding(code, message, self._location(place))]
        own += [Finding("MP901", too_long(size), self._location(None)) for size in left_out[:1]]
        if removed := self._code_of_a_crash():
            files = "a file of the cache was" if removed == 1 else f"{removed} files of the cache were"
            text = f"The program crashed and had loaded compiled code: {files} removed; the next run compiles it again."
            own.append(Finding("MP405", text, self._location(None)))
        report.findings += own
        report.why_not = explain(report)
        remaining: list[Message] = [{"type": "finding", "finding": finding.to_json()} for finding in own]
        remaining.append({"type": "done", "report": report.to_json()})
        exit_code = self._exit["code"] if self._exit else None
        number = self._exit["signal"] if self._exit else None
        if kind == "ok":
            message, exit_code, number = "", 0, None
        return remaining, Outcome(kind, exit_code, number, message, report)

    def _code_of_a_crash(self) -> int:
        """How many files of compiled code were removed, because the program had loaded them and crashed."""
        if self.pid is None or self.request.mode != "run":
            return 0
        cache = CodeCache(usual_folder(os.environ if self.request.env is None else self.request.env))
        number = None if self._exit is None else self._exit["signal"]
        return cache.ended(self.pid, crashed=number in _CRASHES)

    def _decide(self, noise: list[str], report: Report) -> tuple[Kind, str | None, str, dict[str, Any] | None]:
        """Kind, finding code, message, place."""
        failed, wanted = self._failed, self.request.steps
        if self.interrupted and self._exit is not None and self._exit["signal"] == signal.SIGINT:
            return "cancelled", None, "The run was interrupted.", None  # its KeyboardInterrupt is nothing to fix
        if failed is not None:
            return _KINDS.get(failed["code"], "failed"), failed["code"], failed["message"], failed["place"]
        ended_by_others = self._ended == "itself" and self._exit is not None and self._exit["requested"]
        if self._ended == "cancelled" or ended_by_others:
            return "cancelled", None, "The run was cancelled.", None
        if self._ended == "timeout":
            place = _stack_place(noise)
            at = f" (it was at {_short(place['file'])}:{place['line']})" if place else ""
            done = f"{self.steps} of {wanted} steps done" if wanted else f"{self.steps} steps done"
            limit = f"within {self.request.timeout:g} s"
            text = f"The program did not finish {limit}, {done}{at}: raise --timeout or lower --steps."
            return "timeout", "MP907", text, place
        if self.pid is None:
            python = self.request.python or "The interpreter"
            text = f"{python} is not a working Python interpreter: choose another with --python."
            return "tool-error", "MP903", text, None
        if self._exit is None:
            return "killed", "MP906", "Another process killed the run's supervisor: run the program again.", None
        if (number := self._exit["signal"]) is not None and not (self.stopping and number == signal.SIGINT):
            return "killed", "MP906", _killed(number), None
        if (code := self._exit["code"]) and not self.stopping:
            text = f"The program exited with code {code}: fix the error that it reports, and run again."
            return "failed", "MP905", text, None
        called = any(region.calls for region in report.regions)
        if not called and any(f.code.startswith("MPD") for f in report.findings):
            return "ok", None, "", None  # torch.compile's findings in functions that the program compiles itself
        if not called and not any(f.code == "MP901" for f in report.findings):
            text = (
                "The program ended without calling a module, an optimizer or a named region: check that this is the "
                "training script, that its arguments are right, and that it does not do its work in other processes."
            )
            return "ok", "MP904", text, None
        if wanted and self.steps < wanted:
            text = f"The program ended after {self.steps} of {wanted} steps: use more data or epochs, or lower --steps."
            return "ok", "MP909", text, None
        return "ok", None, "", None

    def _location(self, place: dict[str, Any] | None) -> Location:
        if place is None:
            return Location(self.request.file, Range(Position(0, 0), Position(0, 0)))
        line = max(int(place["line"]) - 1, 0)
        found = Range(Position(line, int(place["start"])), Position(line, int(place["end"])))
        return Location(str(place["file"]), found, str(place["function"]))


def _killed(number: int) -> str:
    try:
        name = signal.Signals(number).name
    except ValueError:
        name = f"signal {number}"
    advice = _ADVICE.get(number, "find out what sent the signal, and run again")  # type: ignore[call-overload]
    return f"The program was killed by {name}: {advice}."


def _short(file: str) -> str:
    relative = os.path.relpath(file)
    return file if relative.startswith("..") else relative


def _stack_place(noise: list[str]) -> dict[str, Any] | None:
    """The user's innermost frame of the main thread in a stack dump of ``faulthandler`` (main thread last)."""
    block: list[dict[str, Any]] = []
    for line in noise:
        if line.startswith(("Thread 0x", "Current thread 0x")):
            block = []
        elif (found := _DUMPED_FRAME.match(line)) is not None:
            place = {"file": found["file"], "line": int(found["line"]), "function": found["function"], "start": 0, "end": 0}
            block.append(place)
    ours = ("/lib/python3", "<")
    return next((p for p in block if is_user(p["file"]) and not any(o in p["file"] for o in ours)), None)
