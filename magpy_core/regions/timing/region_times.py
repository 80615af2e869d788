"""What the clock shows of a region: steady calls, compiled and in eager mode by turns. Key type: RegionTimes."""

from __future__ import annotations

import time
import weakref
from collections.abc import Callable, Sequence
from statistics import median
from typing import TYPE_CHECKING, Any, Protocol

from magpy_core.limits import LIMITS
from magpy_core.regions.timing.autograd_hooks import has_history
from magpy_core.regions.timing.comparison import Comparison
from magpy_core.regions.timing.costs import Costs, GapClock
from magpy_core.regions.timing.device_clock import when_done
from magpy_core.regions.timing.passes import Passes
from magpy_core.regions.timing.steps import Steps
from magpy_core.regions.timing.tally import Tally

if TYPE_CHECKING:
    from magpy_core.capture.build import Capture

_STEADY = range(4, 25)  # calls after a capture that alternate between compiled and eager mode
_KEPT = 4096  # timings of one kind


class Spending(Protocol):
    """What the program has waited for."""

    def add(self, seconds: float) -> None: ...


class TimedOptions(Protocol):
    """How a region runs, as its times see it."""

    @property
    def mode(self) -> str: ...
    @property
    def background(self) -> bool: ...
    @property
    def budget(self) -> Spending | None: ...


class Timed(Protocol):
    """A region, as its times see it: how it can be called, and what a call has changed."""

    target: Callable[..., Any]
    captures: list[Capture]
    hits: int
    recordings: int
    disabled: str

    @property
    def options(self) -> TimedOptions: ...

    def dispatch(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any: ...
    def fitting(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Capture | None: ...
    def code_changed(self) -> None: ...
    def retire(self) -> None: ...
    def monitor_failed(self, error: Exception) -> None: ...


class Turn:
    """A call of a region that begins. ``hits`` and ``recordings``: the region's before it; ``now``: its clock; ``is_plain``:
    it is in eager mode, beside compiled calls; ``gaps``: times the cuts of its graphs; ``waited``: how long the program has
    waited for compilations before it."""

    __slots__ = ("_now", "_start", "gaps", "hits", "is_plain", "recordings", "waited")

    def __init__(
        self, hits: int, recordings: int, now: Callable[[], float], *, is_plain: bool = False, gaps: GapClock | None = None
    ) -> None:
        self.hits, self.recordings, self.is_plain, self.gaps = hits, recordings, is_plain, gaps
        self._now, self._start, self.waited = now, now(), 0.0

    def seconds(self) -> float:
        """How long it has taken until now."""
        return self._now() - self._start


class _Failed:
    """Takes an error of ours in a backward pass of a region, which it does not keep alive."""

    def __init__(self, region: Timed) -> None:
        self._region = weakref.ref(region)

    def __call__(self, error: Exception) -> None:
        if (region := self._region()) is not None:
            region.monitor_failed(error)


class RegionTimes:
    """Seconds of calls, filled while a region measures. ``calls``: single ones, compared; ``turn`` counts those since the
    last capture; ``retired`` are captures that are no longer used, whose compilation took time all the same. ``passes``: of
    whole steps. ``tally``: what became of calls. ``trial``: takes the calls of a region that
    is on trial."""

    def __init__(self, steps: Steps | None = None) -> None:
        self.steps = steps or Steps()
        self.calls = Comparison()
        self.guard: list[float] = []
        self.has_history = False  # whether results take part in autograd: there are backward passes
        self.turn = 0
        self.retired: list[Capture] = []
        self.costs = Costs()
        self.passes = Passes()
        self.tally = Tally()
        self.trial: Callable[..., Any] | None = None
        self._awaited: list[tuple[weakref.ref[Capture], int]] = []  # captures that wait for compiled code, and their stage
        self._uncut = LIMITS.timed_cuts
        self._in_step = self._per_step = 0
        self.waited = 0.0  # for compilations, and for comparing calls

    @property
    def by_step(self) -> bool:
        """Whether it takes turns from one step of the program to the next, so that its backward pass counts."""
        return self.steps.are_whole and (self.has_history or self._per_step <= LIMITS.few_in_step)

    @property
    def is_settled(self) -> bool:
        """Whether the calls that are timed are over."""
        return self.turn >= _STEADY.stop and not (self.by_step and self.steps.turns.is_open)

    def restart(self, capture: Capture | None = None) -> None:
        """Other code runs from now on: ``capture``, which is new, or one that has been compiled."""
        self.turn, self._uncut = 0, LIMITS.timed_cuts
        if capture is not None:
            self._awaited.append((weakref.ref(capture), capture.stage))
        self.passes.restart()
        self.steps.changed()

    def stepped(self, kind: str, number: int) -> None:
        """A ``number`` of steps that belong together have ended; ``kind``: plain or compiled, if they were timed."""
        self.passes.stepped(kind, number)
        self._in_step, self._per_step = 0, self._in_step // number

    def call(self, region: Timed, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call ``region``. The two kinds of steady calls alternate, so that they are timed side by side."""
        turn = None
        try:
            turn = self._begun(region, args, kwargs)
            turn.waited = self.waited
        except Exception as error:  # it must never take the program down
            region.monitor_failed(error)
        if turn is None:
            return region.dispatch(args, kwargs)
        if turn.is_plain:
            result = region.target(*args, **kwargs)
        elif turn.gaps is None:
            result = region.dispatch(args, kwargs)
        else:
            with turn.gaps:
                result = region.dispatch(args, kwargs)
        try:
            self._returned(region, turn, result)
        except Exception as error:
            region.monitor_failed(error)
        return result

    def observed(self, region: Timed, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call ``region`` in a check, where results are always those of eager mode."""
        turn = None
        try:
            turn = Turn(region.hits, region.recordings, when_done)
        except Exception as error:  # it must never take the program down
            region.monitor_failed(error)
        result = region.dispatch(args, kwargs)
        if turn is None:
            return result
        try:
            seconds = turn.seconds()
            if region.recordings > turn.recordings:
                self.steps.waited_for(seconds)
            else:
                self.has_history = self.has_history or has_history(result)
                self._passed(region, result, seconds)
                self.tally.ran_eager(seconds)
            if region.hits > turn.hits:
                self.costs.usual(seconds)
        except Exception as error:
            region.monitor_failed(error)
        return result

    def _begun(self, region: Timed, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Turn:
        """A call of ``region`` begins."""
        hits, recordings = region.hits, region.recordings
        compiles = region.options.mode == "compiled" and bool(region.captures) and not region.disabled
        self.turn += 1
        self._in_step += 1
        number, by_step = self.turn, self.by_step
        now = time.perf_counter if self.is_settled else when_done
        plain = self.steps.turns.is_plain if by_step else number in _STEADY and number % 2 == 0
        start = now()
        if plain and compiles and (fitting := region.fitting(args, kwargs)) is not None and fitting.is_compiled:
            self._add(self.guard, now() - start)
            self.steps.now.plain += 1
            return Turn(hits, recordings, now, is_plain=True)
        if number >= _STEADY.stop and compiles and not (by_step and self.steps.turns.is_open):
            if number == _STEADY.stop and not by_step and region.options.budget is not None and self.is_slower():
                region.retire()
            if self._uncut:
                self._uncut -= 1
                return Turn(hits, recordings, now, gaps=GapClock(region.captures))
        return Turn(hits, recordings, now)

    def has_waited(self, seconds: float) -> None:
        """The program has waited for a compilation, in the call that runs."""
        self.waited += seconds
        self.steps.waited_for(seconds)

    def has_compared(self, seconds: float) -> None:
        """The call that runs was compared with eager mode: neither it nor its step is slower for that."""
        self.waited += seconds
        self.steps.now.compared += seconds

    def _returned(self, region: Timed, turn: Turn, result: Any) -> None:
        """The call of ``turn`` has returned."""
        seconds, replayed = turn.seconds() - (self.waited - turn.waited), region.hits > turn.hits
        if turn.gaps is not None:
            turn.gaps.add_to(self.costs)
            self.steps.now.compiled += replayed
        elif turn.is_plain:
            self._add(self.calls.eager, seconds)
            self.tally.ran_eager(seconds)
            self._passed(region, result, seconds)
        else:
            self._dispatched(region, result, seconds, region.recordings > turn.recordings, replayed)

    def _dispatched(self, region: Timed, result: Any, seconds: float, recorded: bool, replayed: bool) -> None:
        """What a call that took ``seconds`` was."""
        if not self.has_history and self.turn < _STEADY.stop:
            self.has_history = has_history(result)
        arrived = replayed and self._has_arrived()  # the call that loads compiled code is served by it
        if arrived and region.options.background:
            region.code_changed()
        if arrived or recorded:
            extra = max(seconds - (median(self.calls.eager) if self.calls.eager else 0.0), 0.0)
            self.steps.waited_for(extra)
            if not recorded and region.options.budget is not None:
                region.options.budget.add(extra)
            return
        if replayed:
            self.steps.now.compiled += 1
            if (
                self.turn >= _STEADY.start and not self.is_settled
            ):  # later calls may be larger: no plain ones are beside them
                self._add(self.calls.compiled, seconds)
        else:
            self.tally.ran_eager(seconds)
        self._passed(region, result, seconds)

    def _passed(self, region: Timed, result: Any, seconds: float) -> None:
        """A forward pass of a step."""
        self.passes.forward += seconds
        if self.has_history and self.steps.watches_backward:
            self.steps.backward.watch(result, self.passes, _Failed(region))

    def _has_arrived(self) -> bool:
        """Whether compiled code of a capture has taken over in this call."""
        if not self._awaited:
            return False
        alive = [(reference, stage, capture) for reference, stage in self._awaited if (capture := reference()) is not None]
        self._awaited = [(reference, c.stage) for reference, _, c in alive if not c.is_final]
        return any(capture.stage > stage for _, stage, capture in alive)

    @staticmethod
    def _add(timings: list[float], seconds: float) -> None:
        if len(timings) < _KEPT:
            timings.append(seconds)

    def interval(self) -> tuple[float, float] | None:
        """Of the speedup: of both passes of a step, if there are such timings, or else of a call."""
        return self.passes.interval() or self.calls.interval()

    def is_slower(self) -> bool:
        """Whether compiled code certainly takes longer than the same in eager mode."""
        if self.has_history and self.passes.interval() is None:
            return False  # nothing is known of the backward pass
        interval = self.interval()
        return interval is not None and interval[1] < 1.0

    def compile_seconds(self, captures: Sequence[Capture]) -> float | None:
        """What compiling took in all; None if nothing was compiled."""
        seconds = [c.compile_seconds for c in [*captures, *self.retired] if c.compile_seconds is not None]
        return round(sum(seconds), 3) if seconds else None
