"""When a region was captured during a run, and why again. Key type: Recording. Key function: history."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from magpy_core.findings import CaptureSummary, Recompile, RegionSummary
from magpy_core.findings.details import Call


@dataclass(frozen=True)
class Recording:
    """A call of the region that recorded it.

    ``number``: of the call, from 1; 0: not known. ``timed``: None for a call without a time. ``causes``: why the
    captures before it did not fit; ``made``: the capture, if it is certain which one it is.
    """

    number: int
    timed: Call | None = None
    causes: tuple[Recompile, ...] = ()
    made: CaptureSummary | None = None


def history(region: RegionSummary, calls: Iterable[Call]) -> list[Recording]:
    """The oldest first. ``calls``: all timed calls of the run, in their order."""
    own = [call for call in calls if call.region == region.id]
    timed = {number: call for number, call in enumerate(own, 1) if call.how == "recorded"}
    causes: dict[int, list[Recompile]] = {}
    for recompile in region.recompiles:
        causes.setdefault(recompile.call, []).append(recompile)
    numbers = sorted({*timed, *causes})
    if not own and region.captures:
        numbers = [0, *numbers]  # the first capture has no cause, so only its time would tell its call
    made: list[CaptureSummary | None] = [*reversed(region.per_capture)]
    # A recording without a capture, or a capture that was dropped, would shift all others. torch.compile counts no hits.
    if len(made) != len(numbers) or region.engine != "magpy":
        made = [None] * len(numbers)
    return [
        Recording(number, timed.get(number), tuple(causes.get(number, ())), capture)
        for number, capture in zip(numbers, made, strict=True)
    ]
