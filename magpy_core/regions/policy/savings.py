"""What a run shows of its compiled code, for the next run of the same command. Key functions: history_of,
futile_runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from magpy_core.limits import LIMITS
from magpy_core.regions.budget.history import LastRun
from magpy_core.regions.region_protocol import RegionView
from magpy_core.regions.reports.unused import why_unused
from magpy_core.regions.timing.steps import Steps


def history_of(regions: Sequence[RegionView], steps: Steps, seconds: float, before: LastRun) -> LastRun:
    """A run of so many seconds. A region that was not timed is taken to be as it was in the run ``before``."""
    saves, slower = dict(before.saves), dict(before.slower)
    whole = steps.medians() if steps.are_whole else None
    for region in regions:
        times = region.times
        if not region.hits and region.recordings >= LIMITS.unused_recordings:
            saves[region.id] = 0.0
        for capture in region.captures:
            if capture.key is None or not (capture.is_retired or capture.hits >= LIMITS.saving_timings):
                continue
            if not capture.is_retired:
                slower.pop(capture.key, None)
            elif capture.is_compiled or capture.key not in before.slower:
                slower[capture.key] = 0
            else:
                slower[capture.key] = before.slower[capture.key] + 1
        if region.captures and all(capture.is_retired for capture in region.captures):
            saves[region.id] = 0.0
            continue
        if not region.hits or min(len(times.calls.eager), len(times.calls.compiled)) < LIMITS.saving_timings:
            continue
        plain, compiled = whole or (median(times.calls.eager), median(times.calls.compiled))
        share = 1.0 if whole else min(region.calls * plain / max(seconds, plain), 1.0)
        saves[region.id] = share * max(1.0 - compiled / plain, 0.0)
    newest = sorted(slower.items(), key=lambda one: one[1])[: LIMITS.most_slower]
    return LastRun(seconds, saves, before.ahead, dict(newest))


def futile_runs(regions: Sequence[RegionView], before: int) -> int:
    """How many runs in a row were too short for compiled code to pay. ``before``: without this one."""
    if any(region.hits for region in regions) or not any(why_unused(region) == "costly" for region in regions):
        return 0
    return 1 if any(region.recordings for region in regions) else before + 1
