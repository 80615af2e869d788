"""Which share of the training step a region takes in eager mode. Key function: step_share."""

from __future__ import annotations

from time import perf_counter

from magpy_core.regions.region_protocol import RegionView


def step_share(region: RegionView) -> float | None:
    """Percent of an eager step, of both passes where backward passes were timed; else of the time since the first step
    began. None where no call was timed."""
    steps, times = region.times.steps, region.times
    takes, step = times.passes.plain_per_step(), steps.plain_median()
    if not (steps.are_whole and takes is not None and step):
        usual = times.tally.usual_seconds
        spent = perf_counter() - steps.times.first - sum(waited for _, waited in steps.waited)
        if usual is None or spent <= 0.0:
            return None
        takes, step = usual * region.calls, spent
    return round(min(100.0 * takes / step, 100.0), 2)
