"""Whether a region's captures pay, where the program does not measure its regions. Key type: CapturesTrial."""

from __future__ import annotations

import time
from typing import Any

from magpy_core.regions.fragments import trial as trials
from magpy_core.regions.region_protocol import RegionView
from magpy_core.regions.reports.performance import slower_on_trial
from magpy_core.regions.timing.comparison import Trial

_GUARD_CHECKS = 5  # that are timed


class CapturesTrial:
    """Kept by the region until it is known. It has no reference to the region: a compiled function that the program drops is
    freed at once."""

    def __init__(self) -> None:
        self._trial = Trial()

    def __call__(self, region: RegionView, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A call of ``region``."""
        if region.captures and len(region.times.guard) < _GUARD_CHECKS:
            self._time_guards(region, args, kwargs)
        return trials.call(_Captures(region), self._trial, args, kwargs)

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

    def decided(self, trial: Trial) -> None:
        region = self._region
        region.times.trial = None
        if trial.pays:
            return
        region.times.eager = trial.plain
        region.retire()
        if found := slower_on_trial(region, "compiled", trial.plain, trial.compiled):
            region.log.add(found)

    def failed(self, error: Exception) -> None:
        self._region.times.trial = None
        self._region.monitor_failed(error)
