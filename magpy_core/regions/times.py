"""What the clock shows of a region: steady calls, compiled and in plain Python by turns. Key type: RegionTimes."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from magpy_core.regions.costs import Costs, timed
from magpy_core.regions.intervals import speedup_interval
from magpy_core.regions.options import Options
from magpy_core.regions.twice import has_history

if TYPE_CHECKING:
    from magpy_core.capture.build import Capture

_STEADY = range(4, 25)  # calls after a capture that alternate between compiled and plain Python
_BETWEEN_GRAPHS = range(25, 32)  # the calls after those, in which the cuts are timed


class Timed(Protocol):
    """A region, as its times see it: how it can be called, and what a call has changed."""

    target: Callable[..., Any]
    options: Options
    captures: list[Capture]
    hits: int
    recordings: int
    disabled: str

    def dispatch(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any: ...
    def fitting(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Capture | None: ...
    def retire(self) -> None: ...


class RegionTimes:
    """Seconds of calls, filled while a region measures. ``turn`` counts the calls since the last capture; ``retired`` are
    captures that are no longer used, whose compilation took time all the same."""

    def __init__(self) -> None:
        self.eager: list[float] = []
        self.compiled: list[float] = []
        self.guard: list[float] = []
        self.has_history = False  # whether results take part in autograd: their backward passes are not in the times
        self.turn = 0
        self._ready = 0
        self.retired: list[Capture] = []
        self.costs = Costs()

    def call(self, region: Timed, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call ``region``. The two kinds of steady calls alternate, so that they are timed side by side."""
        hits, recordings = region.hits, region.recordings
        compiles = region.options.mode == "compiled"
        if region.options.background and (ready := sum(c.is_ready for c in region.captures)) != self._ready:
            self._ready, self.turn = ready, 0  # graphs that were compiled beside the program are there
        self.turn += 1
        turn = self.turn
        steady = turn in _STEADY and compiles and bool(region.captures) and not region.disabled
        start = time.perf_counter()
        if steady and turn % 2 == 0 and (fitting := region.fitting(args, kwargs)) is not None and fitting.is_compiled:
            self.guard.append(time.perf_counter() - start)
            start = time.perf_counter()
            result = region.target(*args, **kwargs)
            self.eager.append(time.perf_counter() - start)
            return result
        if turn == _STEADY.stop and compiles and region.options.overhead is not None and self.is_slower():
            region.retire()
        if turn in _BETWEEN_GRAPHS and compiles:
            with timed(region.captures, self.costs):
                return region.dispatch(args, kwargs)
        start = time.perf_counter()
        result = region.dispatch(args, kwargs)
        if region.hits > hits and region.recordings == recordings and turn >= _STEADY.start:
            self.compiled.append(time.perf_counter() - start)
            if turn in _STEADY:
                self.has_history = self.has_history or has_history(result)
        return result

    def is_slower(self) -> bool:
        """Whether a compiled call certainly takes longer than the same in plain Python, and there is no backward pass."""
        interval = speedup_interval(self.eager, self.compiled)
        return interval is not None and interval[1] < 1.0 and not self.has_history

    def compile_seconds(self, captures: Sequence[Capture]) -> float | None:
        """What compiling took in all; None if nothing was compiled."""
        seconds = [c.compile_seconds for c in [*captures, *self.retired] if c.compile_seconds is not None]
        return round(sum(seconds), 3) if seconds else None
