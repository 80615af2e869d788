"""Why no compiled code of a region served, for a run that gained nothing. Key function: why_unused."""

from __future__ import annotations

from magpy_core.findings import Unused
from magpy_core.limits import LIMITS
from magpy_core.regions.region_protocol import RegionView


def why_unused(region: RegionView) -> Unused:
    """Empty: captures served most of the calls, or nothing was to be compiled."""
    if not region.calls or region.options.mode != "compiled":
        return ""
    if region.times.tally.given_up:
        return region.times.tally.given_up
    captures = region.captures
    if captures and all(capture.is_retired for capture in captures):
        return "slower" if any(capture.is_compiled for capture in captures) else "slower before"
    if 2 * region.hits >= region.calls:
        return "missed" if captures and _missed(region) > LIMITS.many_missed * region.calls else ""
    if region.is_cut:
        return "cut"
    if region.disabled:
        return "refused"
    if not captures:
        return "called once" if region.calls == 1 else region.waits or "not recorded"
    states = {capture.progress for capture in captures if capture.is_compiling}
    if states and any(capture.costs_too_much for capture in captures):
        return "costly"
    budget, steps = region.options.budget, region.times.steps
    if "running" in states and budget is not None and budget.grants_next and not steps.are_mostly_compiled:
        return "again"
    if "running" in states:
        share = max((s for capture in captures if (s := capture.compiler_share) is not None), default=None)
        return "no core" if share is not None and share < LIMITS.compile_held_up else "compiling"
    if states:
        return "queued"
    if region.hits:
        return "missed" if _missed(region) > region.hits else "late"
    if any(capture.background_seconds for capture in captures):
        return "not loaded"
    if region.calls - region.times.tally.before_capture <= 1:
        return "called once"  # the last call was recorded
    return "budget" if region.waits == "budget" else "not served"


def awaited(region: RegionView) -> int:
    """Calls that captures fit, which ran in eager mode while their code was being compiled."""
    return sum(capture.plain_calls for capture in {*region.captures, *region.times.retired})


def _missed(region: RegionView) -> int:
    """Calls since the first capture that fitted none, as far as it is known: not those that were timed in eager mode, or
    that nothing has looked at."""
    others = (
        region.hits + region.recordings + awaited(region) + len(region.times.calls.eager) + region.times.tally.unobserved
    )
    return max(region.calls - region.times.tally.before_capture - others, 0)
