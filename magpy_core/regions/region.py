"""Region: what is captured as a unit, its cache of captures, and the dispatch of its calls. Key types: Region, Options."""

from __future__ import annotations

import re
import threading
import time
import weakref
from collections.abc import Callable, Collection
from dataclasses import dataclass
from statistics import median
from typing import Any

from magpy_core._compat.torch.eval_frame import hide, never_intercept
from magpy_core._compat.torch.surroundings import foreign
from magpy_core._compat.versions import UnsupportedVersion
from magpy_core.capture.build import AGAIN, MISS, Capture
from magpy_core.capture.parts import CaptureFailed
from magpy_core.findings import (
    CaptureSummary,
    Finding,
    Location,
    Position,
    Range,
    Recompile,
    RegionSummary,
    Unsupported,
    Value,
)
from magpy_core.guards.explain import Failure
from magpy_core.monitor.positions import is_user_file
from magpy_core.recording.ledger import Learned
from magpy_core.recording.recording import Recording
from magpy_core.recording.run import run
from magpy_core.recording.trace import Recorded
from magpy_core.regions.costs import Costs, timed
from magpy_core.regions.reporting import again, capture_findings, host_reads, performance_findings, recompile_finding
from magpy_core.regions.step_counts import StepCounts
from magpy_core.regions.timing import speedup_interval
from magpy_core.regions.twice import HINTS, watch

_BETWEEN_GRAPHS = (25, 31)  # the calls after a capture, and after those that time it, in which its cuts are timed
_recording_lock = threading.Lock()  # one monitored run at a time in a process: the collector's young list is shared
_thread = threading.local()


def busy() -> bool:
    """Whether this thread is inside a region call (inner regions are part of the outer one)."""
    return getattr(_thread, "depth", 0) > 0


@dataclass
class Options:
    """How regions run. ``mode``: ``observe`` (results always come from plain Python) or ``compiled``."""

    mode: str = "compiled"
    backend: str = "inductor"
    cache_limit: int = 8
    fullgraph: bool = False
    measure: bool = False
    same_random: bool = False


class Region:
    """One region. Calling it runs the target: by replay where a capture's guards hold, monitored where they do not."""

    def __init__(
        self,
        id: str,
        kind: str,
        name: str,
        location: Location,
        target: Callable[..., Any],
        options: Options,
        report: Callable[[Finding], None] | None = None,
        changed: Callable[[Region], None] | None = None,
        step: Callable[[], int] | None = None,
    ) -> None:
        self.id, self.kind, self.name, self.location = id, kind, name, location
        self.target = target
        self.options = options
        self.captures: list[Capture] = []
        self.findings: dict[Any, Finding] = {}
        self.recompiles: list[Recompile] = []
        self.learned = Learned()
        self.calls = self.hits = self.recordings = 0
        self.breaks = 0
        self.disabled = ""
        self.captures_after_step_3 = 0
        self.eager_seconds: list[float] = []
        self.compiled_seconds: list[float] = []
        self.guard_seconds: list[float] = []
        self._report = report
        self._changed = changed
        self._step = step or (lambda: 0)
        self._dead: list[Capture] = []
        self._measured_since_capture = 0
        self._counts = StepCounts()
        self._costs = Costs()
        self._because: list[Finding] = []  # what made the recording that comes next necessary

    def join(
        self,
        options: Options,
        report: Callable[[Finding], None] | None,
        changed: Callable[[Region], None] | None,
        step: Callable[[], int],
    ) -> None:
        """Run under a session's options and tell its listeners."""
        self.options, self._report, self._changed, self._step = options, report, changed, step

    # -- dispatch ----------------------------------------------------------------------------------------------

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        if getattr(_thread, "depth", 0):
            return self.target(*args, **kwargs)
        return self._outermost(args, kwargs)

    def _outermost(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A call that is not part of another region's."""
        _thread.depth = 1
        try:
            self.calls += 1
            if self.options.measure:
                return self._measured(args, kwargs)
            return self.dispatch(args, kwargs)
        finally:
            _thread.depth = 0

    # Around a call there may be a torch.compile of the user's, which would trace and compile our own functions.
    hide(__call__)
    never_intercept(_outermost)

    def dispatch(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if self.options.mode == "compiled":
            for capture in self.captures:
                try:
                    result = capture.run(args, kwargs)
                except CaptureFailed as failure:
                    self._drop(capture, failure)
                    result = AGAIN  # not from here: what the program raises must have no context of ours
                if result is AGAIN:
                    return self.target(*args, **kwargs)
                if result is not MISS:
                    self.hits += 1
                    capture.hits += 1
                    return result
        else:
            held = self._held(args, kwargs)
            if held is not None:
                self.hits += 1
                held.hits += 1
                start = time.perf_counter()
                result = self.target(*args, **kwargs)
                self._costs.usual(time.perf_counter() - start)
                return result
        return self._miss(args, kwargs)

    def _drop(self, capture: Capture, failure: CaptureFailed) -> None:
        """A capture that can't run is replaced by plain Python, and said so once."""
        self.captures = [c for c in self.captures if c is not capture]
        self._dead.append(capture)
        self.disabled = failure.message
        self.report(Finding(failure.code, failure.message, self.location, region=self.id))

    def _miss(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if self.disabled:
            return self.target(*args, **kwargs)
        around = foreign()
        if around or not _recording_lock.acquire(blocking=False):
            if around:
                self._surrounded(around)
            return self.target(*args, **kwargs)
        try:
            if self.recordings >= self.options.cache_limit:
                return self._over_limit(args, kwargs)
            try:
                self._learn(args, kwargs)
            except Exception as error:  # explaining must never take the program down
                self._monitor_failed(error)
                return self.target(*args, **kwargs)
            return self.record(args, kwargs)
        finally:
            _recording_lock.release()

    def _surrounded(self, around: str) -> None:
        """This call can't be recorded where it is made; another one can."""
        text = (
            f"{self.name} was called with {around} in force, which would see MagPy's own operations: it ran as plain Python."
        )
        hint = "Take it off around the call, or compile what is inside."
        self.report(Finding("MP106", text, self.location, hint=hint, region=self.id))

    def _over_limit(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        changed = f"; last changed: `{self.recompiles[-1].name}`" if self.recompiles else ""
        self.disabled = f"{self.recordings} captures"
        self.report(
            Finding(
                "MP203",
                f"{self.name} was captured {self.recordings} times and runs as plain Python from now on{changed}.",
                self.location,
                region=self.id,
            )
        )
        return self.target(*args, **kwargs)

    # -- recording ---------------------------------------------------------------------------------------------

    def _learn(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Find out why no capture holds, and what to carry symbolically from now on."""
        if not self.captures:
            return
        best: list[Failure] | None = None
        for capture in self.captures:
            failures = capture.guards.explain(args, kwargs, global_ok=capture.globals_hold())
            if failures and (best is None or len(failures) < len(best)):
                best = failures
        if not best:
            best = [Failure("MP201", "a decision on data or on a random number", "as captured", "another outcome", None)]
        learned = []
        for failure in best:
            source = failure.source
            if source is None:
                continue
            if failure.number and source.path not in self.learned.exact:
                self.learned.numbers.add(source.path)
                learned.append(failure)
            elif failure.dims:
                base = source.path
                self.learned.dims.setdefault(base, set()).update(failure.dims)
                learned.append(failure)
        first = next((f for f in best if f not in learned), best[0])
        place = first.location
        if place is None or not is_user_file(place.file):
            place = self.location
        self.recompiles.append(
            Recompile(self.calls, first.name, first.old, first.new, place.file, place.range.start.line + 1)
        )
        others = [f for f in best if f not in learned]
        for failure in learned + others[:1]:
            found = recompile_finding(self, failure, failure in learned, self.recordings, len(others) - 1)
            self._because.append(self.report(found))

    def record(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """One monitored run; its result or exception is the caller's."""
        self.recordings += 1
        because, self._because = self._because, []
        start = time.perf_counter()
        recorded = None
        try:
            recording = Recording(self.learned, self.id, self.location, self.options.fullgraph)
        except UnsupportedVersion:
            raise
        except Exception as error:  # the monitor must never take the program down
            self._monitor_failed(error)
            return self.target(*args, **kwargs)
        recorded = run(recording, self.target, args, kwargs)
        result, exception = recorded.result, recorded.exception
        try:
            capture = self.adopt(recorded, args, kwargs)
        except Exception as error:  # as above: the result is already there
            self._monitor_failed(error)
            capture = None
        if because:
            self._costs.captured_again(because, time.perf_counter() - start, capture)
        if capture is not None and self._backend() != "eager":
            watch(result, weakref.WeakMethod(self._differentiated_twice))
        if exception is not None:
            context = exception.__context__
            try:
                raise exception
            finally:
                exception.__context__ = context  # raising it again here set the caller's
                del exception, recorded, recording  # its traceback has this frame: a cycle would keep all that it leads to
        return result

    def adopt(self, recorded: Recorded, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Capture | None:
        """Turn a monitored run into a capture and findings."""
        capture = None
        if recorded.trace is not None:
            options = (self._backend(), len(args), tuple(kwargs), self.options.same_random)
            try:
                capture = Capture(recorded.trace, recorded.live, *options)
            except Unsupported as error:
                recorded.refuse(error)
        told = [*recorded.findings, *(capture_findings(self, capture) if capture else [])]
        self._counts.holds(capture, [self.report(finding) for finding in told])
        self.breaks += 0 if capture is not None and capture.is_complete else 1
        if capture is not None:
            self.captures = [capture, *self.captures]
            self._measured_since_capture = 0
            if self._step() >= 3:
                self.captures_after_step_3 += 1
        elif recorded.refused or not recorded.skip_reason:
            self.disabled = recorded.findings[0].message if recorded.findings else "it could not be captured"
        if self._changed is not None:
            self._changed(self)
        return capture

    def _backend(self) -> str:
        return "eager" if self.learned.twice else self.options.backend

    def _differentiated_twice(self, how: str) -> None:
        """No compiled graph can be; what was captured is recorded again, to run as it was recorded."""
        if not self.learned.twice:
            self.learned.twice = True
            self._dead += self.captures
            self.captures = []
            text = f"Results of {self.name} are differentiated {how}: its graphs run operator by operator, not compiled."
            hint = HINTS[how]
            self.report(Finding("MP902", text, self.location, hint=hint, region=self.id))

    def _monitor_failed(self, error: Exception) -> None:
        import os
        import traceback

        self.disabled = "the monitor failed"
        where = traceback.extract_tb(error.__traceback__)[-1]
        if os.environ.get("MAGPY_DEBUG"):
            traceback.print_exception(error)
        self.report(
            Finding(
                "MP901",
                f"MagPy's monitor failed on {self.name} ({type(error).__name__}: {str(error)[:160]}); "
                "it runs as plain Python.",
                self.location,
                region=self.id,
                values=(Value("at", f"{where.filename.rsplit('/', 2)[-1]}:{where.lineno}"),),
            )
        )

    def report(self, finding: Finding) -> Finding:
        """Tell ``finding``, or that it was found again; returns the one that is kept."""
        known = self.findings.get(finding.key) or next((f for f in self.findings.values() if again(finding, f)), None)
        if known is not None:
            new = tuple(v for v in finding.values if v not in known.values)
            if new and finding.code in ("MP101", "MP201"):
                known.values = (*known.values[:3], new[-1])  # how it began, and the last outcome or change
            if finding.severity.rank < known.severity.rank:
                known.severity_override = finding.severity_override  # the first was warm-up; it goes on
            known.count += 1
            finding = known
        else:
            self.findings[finding.key] = finding
        self._counts.found(finding)
        if self._report is not None:
            self._report(finding)
        return finding

    def stepped(self) -> None:
        """A step of the program has ended."""
        for finding in self._counts.stepped(self.calls, plain=bool(self.disabled)):
            if finding.steps > 1 and self._report is not None:
                self._report(finding)

    def _held(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Capture | None:
        """The capture whose guards hold; how long they took to check is kept with it."""
        for capture in self.captures:
            start = time.perf_counter()
            if capture.matches(args, kwargs):
                capture.guard_seconds.append(time.perf_counter() - start)
                return capture
        return None

    # -- measuring ---------------------------------------------------------------------------------------------

    def _measured(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Steady calls alternate for a while between compiled and plain Python, so that the two are timed side by side."""
        hits, captures = self.hits, self.recordings
        self._measured_since_capture += 1
        turn = self._measured_since_capture
        steady = 4 <= turn <= 24 and self.options.mode == "compiled" and bool(self.captures) and not self.disabled
        start = time.perf_counter()
        if steady and turn % 2 == 0 and (held := self._held(args, kwargs)) is not None and held.is_compiled:
            self.guard_seconds.append(time.perf_counter() - start)
            start = time.perf_counter()
            result = self.target(*args, **kwargs)
            self.eager_seconds.append(time.perf_counter() - start)
            return result
        if _BETWEEN_GRAPHS[0] <= turn <= _BETWEEN_GRAPHS[1] and self.options.mode == "compiled":
            with timed(self.captures, self._costs):
                return self.dispatch(args, kwargs)
        start = time.perf_counter()
        result = self.dispatch(args, kwargs)
        if self.hits > hits and self.recordings == captures and turn >= 4:
            self.compiled_seconds.append(time.perf_counter() - start)
        return result

    def judge(self) -> None:
        """At the program's end: report what the timings show."""
        for finding in performance_findings(self, self._step()):
            self.report(finding)
        for finding in self._costs.settle(self.findings.values(), self.compiled_seconds, self.calls, self._step()):
            if self._report is not None:
                self._report(finding)

    # -- summary -----------------------------------------------------------------------------------------------

    def summary(self) -> RegionSummary:
        effects = max((len(c.replay.effects) + len(c.trace.writes.mutated) for c in self.captures), default=0)
        complete = bool(self.captures) and not self.disabled and all(c.is_complete for c in self.captures)
        # of a whole graph, such findings tell what data it depends on
        breaks = 0 if complete else sum(1 for f in self.findings.values() if f.code.startswith("MP1"))

        def ms(values: Collection[float]) -> float | None:
            return round(median(values) * 1e3, 4) if values else None

        low, high = speedup_interval(self.eager_seconds, self.compiled_seconds) or (None, None)
        seconds = [c.compile_seconds for c in [*self.captures, *self._dead] if c.compile_seconds is not None]
        return RegionSummary(
            id=self.id,
            kind=self.kind,
            name=self.name,
            file=self.location.file,
            line=self.location.range.start.line + 1,
            calls=self.calls,
            captures=len(self.captures),
            complete=complete,
            graph_breaks=breaks,
            guards=max((len(c.guards) for c in self.captures), default=0),
            side_effects=effects,
            host_reads=host_reads(self),
            hits=self.hits,
            eager_ms=ms(self.eager_seconds),
            compiled_ms=ms(self.compiled_seconds),
            guard_ms=ms(self.guard_seconds) or ms([s for c in self.captures for s in c.guard_seconds]),
            compile_s=round(sum(seconds), 3) if seconds else None,
            captures_after_step_3=self.captures_after_step_3,
            graphs=max((len(c.segments) for c in self.captures), default=0),
            speedup_low=round(low, 4) if low is not None else None,
            speedup_high=round(high, 4) if high is not None else None,
            recompiles=list(self.recompiles),
            per_capture=[
                CaptureSummary(len(c.guards), ms(c.guard_seconds), c.hits, c.is_complete, c.compile_seconds)
                for c in self.captures
            ],
        )

    def __repr__(self) -> str:
        return f"<Region {self.name}: {self.calls} calls, {len(self.captures)} captures, {self.hits} hits>"


_DEFINITION = re.compile(r"\s*(?:async\s+)?(?:def|class)\s+\w+")


def line_location(file: str, line: int, function: str = "") -> Location:
    """A source line (1-based) as a Location; of a definition its keyword and name, as signatures are long."""
    import linecache

    text = linecache.getline(file, line).rstrip("\n")
    start = len(text) - len(text.lstrip())
    definition = _DEFINITION.match(text)
    end = definition.end() if definition is not None else len(text)
    return Location(file, Range(Position(line - 1, start), Position(line - 1, max(end, start + 1))), function)
