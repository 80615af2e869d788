"""Why no compiled code of a region served, for a run that gained nothing. Key function: why_unused."""

from __future__ import annotations

from magpy_core.findings import Unused
from magpy_core.limits import LIMITS
from magpy_core.regions.region_protocol import RegionView


def why_unused(region: RegionView) -> Unused:
    """Empty: captures served most of the calls, or nothing was to be compiled."""
    if not region.calls or 2 * region.hits >= region.calls or region.options.mode != "compiled":
        return ""
    if region.is_cut:
        return "cut"
    if region.disabled:
        return "refused"
    captures = region.captures
    if not captures:
        return region.waits or "not recorded"
    if all(capture.is_retired for capture in captures):
        return "slower" if any(capture.is_compiled for capture in captures) else "slower before"
    states = {capture.progress for capture in captures if capture.is_compiling}
    if "running" in states and region.options.budget is not None and region.options.budget.grants_next:
        return "again"
    if "running" in states:
        share = max((s for capture in captures if (s := capture.compiler_share) is not None), default=None)
        return "no core" if share is not None and share < LIMITS.compile_held_up else "compiling"
    if states:
        return "queued"
    if region.hits:
        return "late"
    return "not loaded" if any(capture.background_seconds for capture in captures) else "not served"
