"""A region on trial: its calls alternate between compiled code and eager mode until it is known which is faster, where the
program does not measure its regions. Key types: Tried, CapturesTrial; key function: call.
"""

from __future__ import annotations

import time
from collections.abc import Hashable, Iterable
from typing import Any, Protocol

from magpy_core.limits import LIMITS
from magpy_core.regions.region_protocol import RegionView
from magpy_core.regions.reports.performance import slower_on_trial
from magpy_core.regions.timing.alternating_calls import AlternatingCalls
from magpy_core.regions.timing.autograd_hooks import has_history
from magpy_core.regions.timing.device_clock import when_done


class Tried(Protocol):
    """What is on trial: a region with its captures, or with its stretches."""

    @property
    def regions(self) -> Iterable[RegionView]:
        """Those whose captures serve its calls."""

    def compiled(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any: ...
    def plain(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any: ...

    def decided(self, trial: AlternatingCalls) -> None:
        """It is known now whether it pays."""

    def failed(self, error: Exception) -> None:
        """An error of ours: it runs in eager mode from now on."""


def call(tried: Tried, trial: AlternatingCalls, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A call of ``tried``. A call inside of it goes the same way; other threads' calls are compiled until it is decided."""
    if trial.pays is not None or not trial.is_of_this_thread:
        is_compiled = trial.pays is not False
        return tried.compiled(args, kwargs) if is_compiled else tried.plain(args, kwargs)
    if trial.is_inside is not None:
        return tried.compiled(args, kwargs) if trial.is_inside else tried.plain(args, kwargs)
    return _take_turn(tried, trial, args, kwargs)


def _take_turn(tried: Tried, trial: AlternatingCalls, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    try:
        state = _state(tried.regions)
        trial.is_inside = trial.begin(when_done(), state)
        if trial.pays is not None:
            tried.decided(trial)
    except Exception as error:  # it must never take the program down
        trial.compared.pays = trial.is_inside = False
        tried.failed(error)
    was_open = trial.pays is None
    try:
        result = tried.compiled(args, kwargs) if trial.is_inside else tried.plain(args, kwargs)
    finally:
        trial.is_inside = None
    try:
        if was_open:
            trial.returned(when_done(), has_history=has_history(result))
            if trial.pays is not None:
                tried.decided(trial)
    except Exception as error:
        trial.compared.pays = False
        tried.failed(error)
    return result


def _state(regions: Iterable[RegionView]) -> Hashable:
    """Changes with each recording, and with each call while some are plain by turns. None while code for some is on its
    way."""
    regions = list(regions)
    captures = [capture for region in regions for capture in region.captures]
    if any(capture.is_due for capture in captures):
        return None
    turns = sum(region.times.turn for region in regions if region.takes_turns)
    return sum(region.recordings for region in regions), sum(capture.is_ready for capture in captures), turns


class CapturesTrial:
    """Kept by the region until it is known. It has no reference to the region: a compiled function that the program drops is
    freed at once."""

    def __init__(self) -> None:
        self._trial = AlternatingCalls()

    def __call__(self, region: RegionView, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A call of ``region``."""
        if region.captures and len(region.times.guard) < LIMITS.timed_guard_checks:
            self._time_guards(region, args, kwargs)
        return call(_Captures(region), self._trial, args, kwargs)

    @staticmethod
    def _time_guards(region: RegionView, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        try:
            start = time.perf_counter()
            if region.fitting(args, kwargs) is not None:
                region.times.guard.append(time.perf_counter() - start)
        except Exception as error:  # it must never take the program down
            region.times.trial = None
            region.monitor_failed(error)


class _Captures:
    """A region with its captures."""

    def __init__(self, region: RegionView) -> None:
        self._region = region
        self.regions = (region,)

    def compiled(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return self._region.dispatch(args, kwargs)

    def plain(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return self._region.target(*args, **kwargs)

    def decided(self, trial: AlternatingCalls) -> None:
        region = self._region
        region.times.trial = None
        if trial.pays:
            return
        region.times.calls.eager = trial.compared.eager
        region.retire()
        if found := slower_on_trial(region, "compiled", trial.compared):
            region.log.add(found)

    def failed(self, error: Exception) -> None:
        self._region.times.trial = None
        self._region.monitor_failed(error)
