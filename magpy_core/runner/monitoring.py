"""The engine's session in a running program, created at the first region call. Key type: Monitoring.

Any error in here becomes one MP901 finding, and the program continues in eager mode.
"""

from __future__ import annotations

import importlib
import io
import json
import os
import sys
import threading
import time
from collections.abc import Callable, Hashable
from contextlib import suppress
from typing import Any

from magpy_core._compat.cpython.own_caches import clear_own_caches
from magpy_core.findings import Finding, Location, Position, Range, Report
from magpy_core.findings.details import Details
from magpy_core.limits import LIMITS
from magpy_core.regions import provider
from magpy_core.runner.channel import Forwarder, Listener
from magpy_core.runner.interrupts import interrupts_call
from magpy_core.runner.pace import Pace
from magpy_core.runner.protocol import MAX_LINE, encode, error_message, too_long
from magpy_core.runner.request import COMPILER_SESSION, SESSIONS
from magpy_core.runner.steps import StepClock
from magpy_core.runner.timeline import Timeline


class Monitoring:
    """Creates regions. ``in_region`` is cheap; ``region`` returns None if the engine is not available."""

    def __init__(self, request: dict[str, Any], channel: Listener, clock: StepClock) -> None:
        self._request = request
        self._channel = channel
        self.clock = clock
        self._forward, self._pace = Forwarder(channel.send), Pace(channel.send)
        self._findings: list[Finding] = []
        self._session: Any = None
        self._kernels: Any = None
        self.in_region: Callable[[], bool] = lambda: False  # called at each call of a module
        provider.use(self.start)  # functions that the program compiles itself become regions of this session
        self.on_left: Callable[[Any], None] = lambda region: None  # a call of a region has returned
        self.before_report: Callable[[], object] = lambda: None
        self._lock = threading.RLock()
        self._closed = False
        self.active = True
        self.timeline = Timeline() if request.get("details") else None

    @property
    def compiles(self) -> bool:
        return bool(self._request["mode"] == "run")

    @property
    def starts_with_compiler(self) -> bool:
        """Whether the session may begin with the first function that torch.compile compiles, before any region."""
        return bool(self._request.get("session_factory") == COMPILER_SESSION)

    def region(self, key: Hashable, *, kind: str, name: str, file: str, line: int, target: Callable[..., Any]) -> Any:
        session = self._session or self.start()
        if session is None:
            return None
        region = session.region(key, kind=kind, name=name, file=file, line=line, target=target)
        self.clock.marks.mark("first_region")
        return region

    @property
    def finds_step_functions(self) -> bool:
        return bool(self._request.get("session_factory") == SESSIONS["magpy"])

    @property
    def cuts_step_functions(self) -> bool:
        return self.finds_step_functions and os.environ.get("MAGPY_TRAINING_LOOPS") != "0"

    def step_function(
        self, key: Hashable, *, name: str, place: tuple[str, int], target: Callable[..., Any], parts: list[Any],
        kind: str = "function", may_be_cut: bool = False,
    ) -> Any:  # fmt: skip
        """The region, on trial, of a function that runs a whole training step."""
        session, (file, line) = self._session, place
        return session and session.step_function(
            key, name=name, file=file, line=line, target=target, parts=parts, kind=kind, may_be_cut=may_be_cut
        )

    def start(self) -> Any:
        """The session, which is created if there is none yet; None if the engine is not available."""
        with self._lock:
            if self._session is None and self.active:
                try:
                    self.use(self._make())
                except Exception as exc:
                    if type(exc).__name__ == "UnknownBackend":  # checking names needs torch
                        self._channel.send(error_message("MP910", str(exc)))
                        os._exit(2)
                    self.failed("MagPy could not start monitoring", exc)
            return self._session

    def use(self, session: Any) -> None:
        self._session, self.in_region = session, session.in_region

    def _make(self) -> Any:
        if self._request["call_policy"]:
            from magpy_core.knowledge import policy

            try:
                policy.extend(self._request["call_policy"])
            except ValueError as exc:
                self.add("MP910", f"[tool.magpy] call-policy is invalid ({exc}): fix it.")
        module, _, attribute = self._request["session_factory"].partition(":")
        factory = getattr(importlib.import_module(module), attribute)
        engine: dict[str, Any] = {}
        # A run that is compared is not timed: compiled code is used wherever possible, and draws eager mode's numbers.
        is_compared = bool(self._request.get("record"))
        compiled = {"mode": "compiled", "backend": self._request["backend"], "measure": not is_compared}
        if self._request["session_factory"] == SESSIONS["magpy"]:
            compiled["background"] = self._request["compile"] == "background"
            compiled["ahead"] = self._request["compile"] == "ahead"
            compiled["on_compiling"] = self._forward.compiling
            compiled["compile_mode"] = self._request.get("compile_mode", "default")
            compiled["command"] = self._command()
            compiled["same_random"] = is_compared
            compiled["verify"] = self._request.get("verify", "first")
            compiled["traces"] = not is_compared and os.environ.get("MAGPY_BISECT") != "0"
        if self.finds_step_functions:
            engine["on_left"] = self.on_left
        return factory(
            **engine,
            cache_limit=self._request["cache_limit"],
            on_finding=self._forward.finding,
            on_region=lambda region: self._forward.region(id(region), region.summary),
            **(compiled if self.compiles else {"mode": "observe"}),
        )

    def _command(self) -> str:
        """Names what is run, and how. What is compiled ahead of time is for a run to the end."""
        wanted = ("script", "module", "args", "steps", "backend", "compile_mode")
        request = {**self._request, "steps": 0} if self._request["compile"] == "ahead" else self._request
        return json.dumps([os.path.realpath(request["file"]), *map(request.get, wanted)])

    def stepped(self, n: int) -> None:
        if (session := self._session) is not None and self.active:
            try:
                session.stepped(n, whole=self.clock.has_optimizer, optimizer=self.clock.optimizer)
            except Exception as exc:
                self.failed("MagPy could not end a step", exc)
        self._forward.step(n)
        if self.compiles and self._session is not None and self.active:
            self._tell(n, self._session)

    def _tell(self, n: int, session: Any) -> None:
        """Tells who watches the run how it is going."""
        now = time.monotonic()
        try:
            self._forward.progress(now, session.compile_progress)
            self._pace.stepped(n, now, session.step_report)
        except Exception as exc:
            self.failed("MagPy could not report the run's progress", exc)

    def expect(self, seconds_left: float) -> None:
        """The program goes on for so long at least."""
        if self.compiles and self.finds_step_functions and self._session is not None and self.active:
            try:
                self._session.expect(seconds_left)
            except Exception as exc:
                self.failed("MagPy could not foresee the run's length", exc)

    def failed(self, what: str, exc: BaseException) -> None:
        """Reports once that the monitor failed; the program runs unmonitored from now on."""
        self.active = False
        self.add("MP901", f"{what} ({type(exc).__name__}: {exc}); the program runs in eager mode.")

    def await_causes(self) -> None:
        """Waits a while for what causes a difference, if that is being looked for. The program's code has ended, and what it
        has printed is shown. Ctrl-C ends this search and nothing else, whatever the program has made of it."""
        session = self._session
        if not self.compiles or not getattr(session, "is_tracing", False):
            return
        for stream in (sys.__stdout__, sys.__stderr__):
            if type(stream) is io.TextIOWrapper:
                with suppress(OSError, ValueError):  # closed by the program, or by its reader
                    stream.flush()
        places = [one.location for one in session.findings if one.code == "MP914"]
        where = [*dict.fromkeys(f"{os.path.relpath(at.file)}:{at.range.start.line + 1}" for at in places)]
        with self._lock, interrupts_call(session.skip_causes):  # who ends the process in the meantime waits for the result
            self._channel.send({"type": "tracing", "seconds": LIMITS.bisect_at_end, "where": where})
            try:
                session.await_causes(LIMITS.bisect_at_end)
            except Exception as exc:
                self.add("MP901", f"MagPy could not find the cause of a difference ({type(exc).__name__}: {exc}).")

    def compile_for_target(self) -> None:
        """Compiles what was captured for the request's target, in other processes. The program's code has ended, but not its
        interpreter, which can't start processes any more at its exit. Ctrl-C stops it. Whoever watches the run gets the
        report before: compiling takes minutes."""
        target = self._request.get("target")
        if not target or self._session is None:
            return
        with self._lock:  # who ends the process in the meantime waits for the result
            try:
                if self.timeline is not None:
                    report = self.report(self._request["entrypoint"])
                    self._channel.send({"type": "captured", "report": report.to_json()})
                line = self._request.get("target_line")
                from magpy_core.products.targets.kernels import session_kernels

                self._kernels = session_kernels(
                    self._session,
                    target,
                    (line[0], line[1]) if line else None,
                    lambda done, of: self._channel.send({"type": "lowering", "done": done, "of": of}),
                )
            except KeyboardInterrupt:
                return
            except Exception as exc:
                self.add("MP901", f"MagPy could not compile for {target} ({type(exc).__name__}: {exc}).")

    def add(self, code: str, message: str, *, file: str | None = None, hint: str = "") -> None:
        """Adds a finding of the runner about the whole entrypoint."""

        top = Location(os.path.abspath(file or self._request["file"]), Range(Position(0, 0), Position(0, 0)))
        finding = Finding(code, message, top, hint)
        self._findings.append(finding)
        self._forward.finding(finding)

    def close(self, entrypoint: str) -> None:
        """Sends the report, once, however the program ends. Another thread that comes here waits until it is sent: then
        the process may end."""
        with self._lock:
            if not self._closed:
                self._closed = True
                self._send_report(entrypoint)

    @property
    def calm_session(self) -> Any:
        """The session, if calls may be left unwatched: for no one who wants to see each of them."""
        every = self.timeline is not None or self.clock.limit or self._request.get("record")
        every = every or not (self.compiles and self.finds_step_functions)
        return self._session if self.active and not every else None

    def _send_report(self, entrypoint: str) -> None:
        self.before_report()
        if self._session is not None:
            try:
                self._session.finish()
            except Exception as exc:
                self.failed("MagPy could not end monitoring", exc)
        report = self.report(entrypoint)
        if self.clock.only_evaluates:
            self._forward.step(self.clock.module_calls)  # its calls are all the steps that it has
        self._forward.finish()
        if self.compiles:
            self._pace.finish(self.clock.count, report.step)
        # without a parent the message goes nowhere, whatever its size
        if report.details is not None and (size := len(encode({"type": "done", "report": report.to_json()}))) > MAX_LINE:
            report.details = None
            self.add("MP901", too_long(size))
            report.findings.append(self._findings[-1])
        self._channel.send({"type": "done", "report": report.to_json()})

    @property
    def regions(self) -> int:
        """How many there are."""
        return 0 if self._session is None else len(self._session.regions)

    def findings(self) -> list[Finding]:
        """Those so far."""
        return [*(() if self._session is None else self._session.findings), *self._findings]

    def flush(self) -> None:
        """Sends what waits."""
        self._forward.flush()

    def report(self, entrypoint: str) -> Report:
        """What is known now."""

        report = Report(entrypoint, timings=self.clock.marks.timings())
        if self._session is not None:
            try:
                report.regions = [region.summary() for region in self._session.regions]
                report.step = self._session.step_report() if self.compiles else None
                report.numerics = getattr(self._session, "numerics", "")  # of MagPy's own sessions
                report.findings = list(self._session.findings)
                report.kernels = self._kernels
                if self.timeline is not None:
                    report.details = Details(
                        self._session.details(), self.timeline.calls(), self.timeline.graphs(self._session.graph_times)
                    )
            except Exception as exc:
                self.failed("MagPy could not write its report", exc)
        report.findings += self._findings
        return report

    def release(self) -> None:
        """Lets go of the program's objects: what its modules hold dies when the interpreter ends, as it does without us, and
        files that it has not closed are written."""
        self.active = False
        session, self._session = self._session, None
        self.timeline = None
        self._forward.forget()
        if session is not None:
            session.release()
        clear_own_caches()

    def abandon(self) -> None:
        """Stops monitoring in a forked process."""
        self.active = False
        self._lock = threading.RLock()
        self._channel.abandon()
