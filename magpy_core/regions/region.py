"""Region: what is captured as a unit, its cache of captures, and the dispatch of its calls. Key types: Region, Options."""

from __future__ import annotations

import contextlib
import os
import threading
import time
import traceback
import weakref
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from statistics import median
from typing import Any

from magpy_core._compat.torch.eval_frame import hide, never_intercept
from magpy_core._compat.torch.surroundings import in_cuda_graph
from magpy_core._compat.versions import UnsupportedVersion
from magpy_core.backends import background
from magpy_core.capture.build import Capture
from magpy_core.capture.outcome import MISS, CaptureFailed, KnownSlower, NotRun, PathsVary, WrongResult
from magpy_core.capture.settings import Differences, Settings
from magpy_core.findings import Finding, Location, Recompile, RegionSummary, Unsupported, Unused
from magpy_core.limits import LIMITS
from magpy_core.monitor.hooks import belongs_to_user
from magpy_core.recording.ledger import Learned
from magpy_core.recording.recording import Recording
from magpy_core.recording.run import Outcome, run
from magpy_core.recording.trace import Recorded, Trace
from magpy_core.regions.double_backward import HINTS, watch
from magpy_core.regions.log import Listeners, RegionLog
from magpy_core.regions.options import Options
from magpy_core.regions.policy.policy import Miss, Policy, Sampled
from magpy_core.regions.reports.captures import capture_findings, own_error_finding
from magpy_core.regions.reports.performance import performance_findings
from magpy_core.regions.reports.summary import summarise
from magpy_core.regions.threads import APART, INSIDE, THREAD
from magpy_core.regions.timing.region_times import RegionTimes
from magpy_core.regions.trial import CapturesTrial

_raised: weakref.WeakKeyDictionary[Capture, int] = weakref.WeakKeyDictionary()
_recording_lock = threading.Lock()  # one monitored run at a time in a process: the collector's young list is shared


class Region:
    """One region. Calling it runs the target: by replay where a capture's guards hold, monitored where they do not.

    ``captures``: newest first. ``learned``: what varied, and is symbolic from now on."""

    def __init__(
        self,
        id: str,
        kind: str,
        name: str,
        location: Location,
        target: Callable[..., Any],
        options: Options,
        listeners: Listeners | None = None,
    ) -> None:
        self.id, self.kind, self.name, self.location = id, kind, name, location
        self.target = target
        self.options = options
        self.captures: list[Capture] = []
        self.learned = self._nothing_learned()
        self.calls = self.hits = self.recordings = 0
        self.policy = Policy()
        self.log = RegionLog(listeners or Listeners(), doubts_first_call=options.mode == "observe")
        self.times = RegionTimes(options.steps)

    @property
    def disabled(self) -> str:
        """Why it runs in eager mode, or empty."""
        return self.policy.reason

    @disabled.setter
    def disabled(self, reason: str) -> None:
        self.policy.close(reason)

    @property
    def serves_most(self) -> bool:
        """Whether its captures serve most calls, although it may not be captured again: also those of late, since what they
        were made for may be over (a learning rate that an evaluation lowers)."""
        return bool(self.captures) and 2 * self.hits >= self.calls and self.policy.missed < LIMITS.misses_before_cut

    @property
    def waits(self) -> Unused:
        """Why the last call that no capture fitted was not recorded."""
        return self.policy.waits

    @property
    def is_cut(self) -> bool:
        """Whether its calls go to stretches."""
        return self.policy.fragments is not None

    @property
    def takes_turns(self) -> bool:
        """Whether some of its calls are plain, because its captures are being timed."""
        is_timed = self.options.measure and not self.times.is_settled
        return is_timed and not self.disabled and any(capture.is_ready for capture in self.captures)

    @property
    def findings(self) -> dict[Any, Finding]:
        return self.log.findings

    @property
    def recompiles(self) -> list[Recompile]:
        return self.log.recompiles

    def forget(self) -> None:
        """Back to the beginning: no captures, no findings, nothing learned."""
        self.captures = []
        self.log.clear()
        self.learned = self._nothing_learned()
        self.recordings = 0
        self.policy = Policy()
        self.times.trial = None

    def _nothing_learned(self) -> Learned:
        return Learned(dynamic=self.options.dynamic is True)

    # -- dispatch ----------------------------------------------------------------------------------------------

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        before = getattr(THREAD, "depth", 0)
        if before and before != APART:
            return self.target(*args, **kwargs)
        if self.policy.fragments is not None:
            self.calls += 1
            return self.policy.fragments(args, kwargs)
        return self._outermost(args, kwargs, before)

    def _outermost(self, args: tuple[Any, ...], kwargs: dict[str, Any], before: int = 0) -> Any:
        """A call that is not part of another region's."""
        THREAD.depth = INSIDE
        try:
            self.calls += 1
            times = self.times
            timed = times.call if self.options.measure else times.observed if times.steps.observes else times.trial
            result = timed(self, args, kwargs) if timed is not None else self.dispatch(args, kwargs)
        finally:
            THREAD.depth = before
        if self.options.on_left is not None:
            self._contain(self.options.on_left, self)
        return result

    # Around a call there may be a torch.compile of the user's, which would trace and compile our own functions.
    hide(__call__)
    never_intercept(_outermost)

    def dispatch(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if self.options.mode == "compiled":
            start = 0.0
            if self.options.background:
                if self.policy.backoff.skip():
                    return self._run_plain(self.policy.backoff.awaited(), args, kwargs)
                start = time.perf_counter() - self.times.waited
            for capture in self.captures:
                try:
                    result = capture.run(args, kwargs)
                except CaptureFailed as failure:
                    self._contain(self._drop, capture, failure)
                    result = NotRun.RETIRED  # not from here: what the program raises must have no context of ours
                if type(result) is NotRun:
                    return self._rerun(result, capture, args, kwargs, start)
                if result is not MISS:
                    self.hits += 1
                    self.policy.missed = 0
                    capture.hits += 1
                    if capture.hits == 1:
                        self._contain(self._served_first, capture)
                    return result
        else:
            try:
                fitting = self.fitting(args, kwargs)
            except Exception as error:
                self.monitor_failed(error)
                fitting = None
            if fitting is not None:
                self.hits += 1
                self.policy.missed = 0
                fitting.hits += 1
                return self.target(*args, **kwargs)
            start = 0.0
        return self._miss(args, kwargs, start)

    def code_changed(self, capture: Capture | None = None) -> None:
        """Other code runs from now on: ``capture``, which is new, or one that has been compiled."""
        self.times.restart(capture)
        self.policy.backoff.restart()

    def _served_first(self, capture: Capture) -> None:
        """``capture`` has served its first call, so its graphs are compiled."""
        if self.options.budget is not None:
            self.options.budget.serves(self.id)
        if self.options.on_trial and self.times.trial is None:
            self.times.trial = CapturesTrial()

    def _rerun(self, why: NotRun, capture: Capture, args: tuple[Any, ...], kwargs: dict[str, Any], start: float) -> Any:
        """The call that ``capture`` fits and has not served, in eager mode. Its guards were checked from ``start`` on."""
        if why is NotRun.HELD:
            return self._miss(args, kwargs, start, capture)
        if why is NotRun.UNPROVEN:
            return self._run_beside_recording(capture, args, kwargs)
        if why is NotRun.NOT_READY and self.options.background:
            if capture.needs_path_check:
                self._contain(self.policy.code_arrived, capture)
            return self._run_uncompiled(capture, args, kwargs, start)
        result = self.target(*args, **kwargs)
        if why is NotRun.RAISED and not (capture.hits or in_cuda_graph()):
            self._contain(self._raised_alone, capture)
        return result

    def _run_beside_recording(self, capture: Capture, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A call in eager mode, which what ``capture`` has recorded is compared with."""
        try:
            recorded = capture.rerun(args, kwargs)
        except Exception as error:  # the monitor must never take the program down
            self.monitor_failed(error)
            recorded = None
        result = self.target(*args, **kwargs)
        if recorded is not None:
            try:
                capture.prove(recorded, result)
            except CaptureFailed as failure:
                self._contain(self._drop, capture, failure)
            except Exception as error:
                self.monitor_failed(error)
        return result

    def _raised_alone(self, capture: Capture) -> None:
        """The graph of a capture that has never served a call raised, and eager mode did not."""
        _raised[capture] = _raised.get(capture, 0) + 1
        if _raised[capture] >= LIMITS.most_raised:
            self._drop(capture, CaptureFailed("MP902", "The compiled graph of the region raises where eager mode does not."))

    def _run_uncompiled(self, capture: Capture | None, args: tuple[Any, ...], kwargs: dict[str, Any], start: float) -> Any:
        """A plain call for which guards were checked from ``start`` on, without what it has waited for a compilation."""
        checked = time.perf_counter()
        result = self._run_plain(capture, args, kwargs)
        backoff, check = self.policy.backoff, checked - self.times.waited - start
        self._contain(backoff.wasted_check, capture, self.hits, check, time.perf_counter() - checked)
        return result

    def _run_plain(self, capture: Capture | None, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A plain call, which ``capture`` would serve if its compiled code were ready."""
        start = time.perf_counter()
        result = self.target(*args, **kwargs)
        if capture is not None:
            self._contain(capture.ran_plain, time.perf_counter() - start)
        return result

    def fitting(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Capture | None:
        """The capture whose guards hold; how long they took to check is kept with it."""
        for capture in self.captures:
            start = time.perf_counter()
            if capture.matches(args, kwargs):
                capture.guard_seconds.append(time.perf_counter() - start)
                return capture
        return None

    def _drop(self, capture: Capture, failure: CaptureFailed) -> None:
        """A capture that can't run: the region runs in eager mode from now on, and a finding says so once."""
        if isinstance(failure, KnownSlower):
            capture.retire(check_guards=True)
            return
        self.captures = [c for c in self.captures if c is not capture]
        self.policy.dropped(self.captures)
        self.times.retired.append(capture)
        if not capture.hits:
            self.policy.backoff.wasted_seconds += capture.background_seconds
        if isinstance(failure, PathsVary):
            self.learned.holds = False
            self.captures = [c for c in self.captures if not c.holds_writes]
            self.policy.dropped(self.captures)
            return  # with graphs that are cut there, it may be faster
        is_withdrawn = self.learned.withdraw()  # with sizes and numbers as they are, it may be possible
        if is_withdrawn and not isinstance(failure, WrongResult):
            return
        if not is_withdrawn:
            self.disabled = failure.message
        self._report_failure(failure)

    def _report_failure(self, failure: CaptureFailed) -> None:
        place = failure.location or self.location
        values = failure.values if isinstance(failure, WrongResult) else ()
        found = Finding(failure.code, failure.message, place, failure.hint, self.id, failure.path, values)
        kept = self.log.add(found)
        if isinstance(failure, WrongResult):
            if failure.tracing is not None:
                self.log.tracings.append((kept, failure.tracing))
        elif failure.location is not None:  # there it can be cut
            self.log.obstacles = [*self.log.obstacles, found]

    def _miss(self, args: tuple[Any, ...], kwargs: dict[str, Any], start: float, held: Capture | None = None) -> Any:
        """A call that no capture fits, or only the ``held`` one; if it waits for compiled code, guards were checked from
        ``start`` on."""
        self.policy.missed += 1
        if _recording_lock.acquire(blocking=False):
            try:
                try:
                    is_recorded = self.policy.decide(Miss(self, args, kwargs, held))
                except Exception as error:  # the monitor must never take the program down
                    self.monitor_failed(error)
                    is_recorded = False
                if is_recorded:
                    return self.record(args, kwargs, held)
            finally:
                _recording_lock.release()
        return self._run_uncompiled(held, args, kwargs, start) if start else self.target(*args, **kwargs)

    # -- recording ---------------------------------------------------------------------------------------------

    def record(self, args: tuple[Any, ...], kwargs: dict[str, Any], held: Capture | None = None) -> Any:
        """One monitored run; its result or exception is the caller's. ``held``: the capture that fits the call."""
        self.recordings += held is None
        causes, self.log.causes = self.log.causes, []
        start = time.perf_counter()
        outcome = Outcome()
        try:
            capture = self.build_capture(self._run(args, kwargs, outcome), args, kwargs, held)
            causes += self.log.causes
            self.log.causes = []
            seconds = time.perf_counter() - start
            if self.options.budget is not None:
                confirms = capture is None and held in self.captures
                self.options.budget.recorded(self.id, seconds, confirms=confirms)
            if causes:
                self.times.costs.recaptured(causes, seconds, capture)
            if capture is not None and self._backend != "eager":
                watch(outcome.result, weakref.WeakMethod(self._differentiated_twice))
        except Exception as error:  # the monitor must never take the program down
            if isinstance(error, UnsupportedVersion) or belongs_to_user(error):
                raise
            self.monitor_failed(error)
        if not outcome.done:  # not from in there: what the program raises must have no context of ours
            return self.target(*args, **kwargs)
        exception, result = outcome.take()
        if exception is not None:
            context = exception.__context__
            try:
                raise exception
            finally:
                exception.__context__ = context  # raising it again here set the caller's
                del exception  # its traceback has this frame
        return result

    def _run(self, args: tuple[Any, ...], kwargs: dict[str, Any], outcome: Outcome) -> Recorded:
        recording = Recording(self.learned, self.id, self.location, self.options.fullgraph)
        THREAD.records = True
        try:
            return run(recording, self.target, args, kwargs, outcome)
        finally:
            THREAD.records = False

    def build_capture(
        self, recorded: Recorded, args: tuple[Any, ...], kwargs: dict[str, Any], held: Capture | None = None
    ) -> Capture | None:
        """Turn a monitored run into a capture and findings; if the call fits the ``held`` one, only for another path."""
        capture = None
        if self._backend != "eager":
            recorded.refuse_sizes_from_data()
        if held is not None and not self._is_other_path(recorded.trace, held):
            return None
        if recorded.trace is not None:
            beside = self.options.background and self._backend == "inductor" and background.available()
            # Compiled code that draws other numbers would make results depend on when it was ready, and a script that is run
            # under the monitor no longer reproducible. On an accelerator it does.
            same_random = self.options.same_random or ((beside or self.options.measure) and background.available())
            settings = Settings(
                self.id, len(args), tuple(kwargs), self._backend, same_random, beside, self.options.tuning,
                verify=self.options.verify, step=self.log.listeners.step, on_compiling=self.options.on_compiling,
                differences=Differences(
                    self.options.tracings, partial(_better_is_wrong, weakref.ref(self)),
                    on_sampled=partial(_has_compared, weakref.ref(self)),
                    on_granted=partial(_has_waited, weakref.ref(self)),
                ),
            )  # fmt: skip
            if (budget := self.options.budget) is not None:
                affords = partial(budget.affords_loading, region=self.id)
                worthwhile = partial(budget.is_worthwhile, self.policy.backoff)
                settings = replace(
                    settings, affords=affords, is_worthwhile=worthwhile, is_known_slower=budget.is_known_slower,
                    differences=replace(settings.differences, on_verified=budget.add),
                )  # fmt: skip
            try:
                capture = Capture(recorded.trace, recorded.live, settings)
            except Unsupported as error:
                recorded.refuse(error)
        if capture is None and recorded.refused and self.learned.withdraw():
            return None  # with sizes and numbers as they are, the next call may be captured
        findings = [*recorded.findings, *(capture_findings(self, capture) if capture else [])]
        refused = capture is None and (recorded.refused or not recorded.skip_reason)
        is_in_doubt = refused and self.log.doubts_first_call and self.calls == 1
        self.log.recorded(capture, findings, computes=recorded.has_tensors or self.kind != "module", is_in_doubt=is_in_doubt)
        self.log.obstacles = recorded.obstacles + (self.log.obstacles if capture is not None else [])
        if capture is not None and self._is_spent(capture, args, kwargs):
            self.policy.spent, self.recordings = capture, 0
        elif capture is not None:
            self.times.tally.before_capture = self.times.tally.before_capture or self.calls - 1
            self.captures, self.policy.spent = [capture, *self.captures], None
            self.policy.captured(self, capture)
            self.code_changed(capture)
        elif (
            refused and not is_in_doubt and not (recorded.is_refused_on_branch and self.policy.may_take_another_branch(self))
        ):
            self.disabled = recorded.findings[0].message if recorded.findings else "it could not be compiled"
        if self.log.listeners.on_region is not None:
            self.log.listeners.on_region(self)
        return capture

    def _is_spent(self, capture: Capture, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        """Whether the region's first capture is over already: the call has changed what its own guards require (state that
        it has created, a number that it has set), so that the next call can't use it. It only shows what varies."""
        if self.recordings != 1 or self.policy.spent is not None or self.options.mode != "compiled":
            return False
        if capture.trace.counts:
            return False  # a cache would count the lookups
        return bool(capture.guards.explain(args, kwargs, global_ok=capture.globals_hold()))

    def _is_other_path(self, trace: Trace | None, held: Capture) -> bool:
        """A call that the ``held`` capture fits was recorded: whether to capture it as well. ``trace`` None: it can't be."""
        sampled = self.policy.sampled(self, trace, held)
        if sampled is Sampled.KNOWN:
            return False
        if trace is None:
            return True
        self.recordings += 1
        if sampled is Sampled.VARYING:
            self._drop(held, PathsVary())
            return False
        return self.policy.other_path(self)

    @property
    def _backend(self) -> str:
        return "eager" if self.learned.twice else self.options.backend

    def retire(self) -> None:
        """Captures that were measured to be slower than eager mode serve no more: calls that they fit run in eager mode.
        Others are captured as before, if finding that out takes little of such a call."""
        guard, eager = self.times.guard, self.times.calls.eager
        looks = not (guard and eager) or median(guard) < LIMITS.cheap_guard * median(eager)
        for capture in self.captures:
            capture.retire(check_guards=looks)

    def _differentiated_twice(self, how: str) -> None:
        """No compiled graph can be: the region is recorded again, and its graphs run as recorded."""
        if not self.learned.twice:
            self.learned.twice = True
            self.times.retired += self.captures
            self.captures = []
            self.policy.dropped(self.captures)
            text = f"Results of {self.name} are differentiated {how}: its graphs run operator by operator, not compiled."
            self.report("MP913", text, HINTS[how])

    # -- reporting ---------------------------------------------------------------------------------------------

    def report(self, code: str, text: str, hint: str = "") -> None:
        """A finding about the region as a whole."""
        self.log.add(Finding(code, text, self.location, hint=hint, region=self.id))

    def monitor_failed(self, error: Exception) -> None:
        """An error of ours: the region runs in eager mode from now on, and MP901 says so."""
        with contextlib.suppress(Exception):  # what fails may be this
            self.disabled = "the monitor failed"
        if os.environ.get("MAGPY_DEBUG"):
            traceback.print_exception(error)
        with contextlib.suppress(Exception):  # what fails may be the reporting
            self.log.add(own_error_finding(self, error))

    def _contain(self, step: Callable[..., object], *args: Any) -> None:
        """A step of our own, whose errors must never take the program down."""
        try:
            step(*args)
        except Exception as error:
            self.monitor_failed(error)

    def stepped(self) -> None:
        """A step of the program has ended."""
        self.log.stepped(self.calls, plain=bool(self.disabled))

    def finish(self) -> None:
        """The program has ended: report what the timings show."""
        steps = self.log.listeners.step()
        for finding in performance_findings(self, steps):
            self.log.add(finding)
        costs = self.times.costs
        seams = self.policy.fragments.timed_seams if self.policy.fragments is not None else None
        self.log.notify(costs.assign(self.findings.values(), self.times.calls.compiled, self.calls, steps, seams))

    def summary(self) -> RegionSummary:
        return summarise(self)

    def __repr__(self) -> str:
        return f"<Region {self.name}: {self.calls} calls, {len(self.captures)} captures, {self.hits} hits>"


def _has_waited(region: weakref.ref[Region], seconds: float) -> None:
    """The program has waited for a compilation of the region."""
    if (one := region()) is not None:
        one.times.has_waited(seconds)


def _has_compared(region: weakref.ref[Region], seconds: float) -> None:
    """A call of the region was compared with eager mode, which is no part of its time."""
    if (one := region()) is not None:
        one.times.has_compared(seconds)


def _better_is_wrong(region: weakref.ref[Region], failure: CaptureFailed) -> None:
    """Better code gives another result than eager mode; the previous code goes on."""
    if (known := region()) is not None:
        known._contain(known._report_failure, failure)
