"""The training step in figures, from what its regions and the clock show. Key function: step_report."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from magpy_core.findings import STEP_KINDS, StepPart, StepReport
from magpy_core.limits import LIMITS
from magpy_core.regions.region_protocol import RegionView
from magpy_core.regions.timing.comparison import speedup_interval
from magpy_core.regions.timing.passes import Passes
from magpy_core.regions.timing.steps import Steps

_REST = "the rest"


def step_report(steps: Steps, regions: Sequence[RegionView]) -> StepReport:
    """Whole steps where those were timed by turns; without an optimizer, the regions' calls tell what was saved."""
    report = StepReport(
        count=steps.count,
        plain=steps.plain_count,
        compiled=steps.compiled_count,
        wait_s=round(sum(seconds for _, seconds in steps.waited), 3),
        compile_s=round(sum(c.background_seconds for r in regions for c in [*r.captures, *r.times.retired]), 3),
        seconds=round(steps.times.seconds, 3),
        timeline=list(steps.times.samples),
    )
    whole = steps.medians() if steps.are_whole else None
    if whole is not None:
        report.plain_ms, report.compiled_ms = _ms(whole[0]), _ms(whole[1])
        low, high = steps.interval() or (None, None)
        report.speedup_low, report.speedup_high = _rounded(low), _rounded(high)
        report.parts = [part for region in regions if (part := _part(region, whole[0])) is not None]
        report.parts.append(_rest(report))
    if whole is None:
        per_step = _saved_by_calls(regions) / max(report.compiled, 1)
    else:  # a difference that is not certain is none
        per_step = whole[0] - whole[1] if report.verdict in ("faster", "slower") else 0.0
    if whole is not None or any(r.times.calls.eager and r.times.calls.compiled for r in regions):
        report.saved_s = round(per_step * report.compiled - report.wait_s, 3)
        report.break_even = _break_even(steps, per_step)
    return report


def _saved_by_calls(regions: Sequence[RegionView]) -> float:
    saved = 0.0
    for region in regions:
        eager, compiled = region.times.calls.eager, region.times.calls.compiled
        interval = speedup_interval(eager, compiled)
        if interval is not None and not interval[0] <= 1.0 <= interval[1]:  # what is not certain counts for nothing
            saved += region.hits * (median(eager) - median(compiled))
    return saved


def _break_even(steps: Steps, per_step: float) -> int | None:
    """The step behind which the balance is positive for good. The balance falls only where the program waited, so that it is
    enough to look there: who watches a run of a million steps asks twice a second."""
    if per_step <= 0:
        return None
    compiled, waited, before, lost = STEP_KINDS.index("compiled"), [(0, 0, 0.0)], 0, 0.0
    for number, seconds in steps.waited:
        before += steps.kinds.count(compiled, waited[-1][0], number)
        lost += seconds
        waited.append((number, before, lost))
    number, before, lost = next((at for at in reversed(waited) if at[1] * per_step <= at[2]), waited[0])
    needed = int(lost / per_step) + 1 - before  # compiled steps from here on
    return _nth(steps.kinds, compiled, needed, number)


def _nth(kinds: bytearray, kind: int, count: int, start: int) -> int | None:
    """The number of the ``count``-th step of a kind after the step ``start``; None if there are fewer."""
    if kinds.count(kind, start) < count:
        return None
    low, high = start, len(kinds)  # count(start, high) >= count > count(start, low)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if kinds.count(kind, start, middle) >= count else (middle, high)
    return high


def _part(region: RegionView, step: float) -> StepPart | None:
    """None if too little was timed, or if what is compiled in its place is listed: the parts of a step add up to it."""
    if region.is_cut or (region.kind == "stretch" and region.times.tally.given_up):
        return None
    passes = region.times.passes
    plain, compiled = Passes.medians(passes.plain), Passes.medians(passes.compiled)
    if plain is None or compiled is None or sum(plain) > step:  # longer than the step: timed in other steps than those
        return None
    if min(len(passes.plain), len(passes.compiled)) < LIMITS.shown_timings:
        return None
    learns = region.times.has_history
    return StepPart(
        region.name,
        region.id,
        _ms(plain[0]),
        _ms(plain[1]) if learns else None,
        _ms(compiled[0]),
        _ms(compiled[1]) if learns else None,
    )


def _rest(report: StepReport) -> StepPart:
    """What is in no region: its backward pass cannot be told from the Python around it."""
    assert report.plain_ms is not None and report.compiled_ms is not None
    plain = sum((p.plain_forward_ms or 0.0) + (p.plain_backward_ms or 0.0) for p in report.parts)
    compiled = sum((p.compiled_forward_ms or 0.0) + (p.compiled_backward_ms or 0.0) for p in report.parts)
    return StepPart(
        _REST,
        plain_forward_ms=round(max(report.plain_ms - plain, 0.0), 4),
        compiled_forward_ms=round(max(report.compiled_ms - compiled, 0.0), 4),
    )


def _ms(seconds: float) -> float:
    return round(seconds * 1e3, 4)


def _rounded(ratio: float | None) -> float | None:
    return None if ratio is None else round(ratio, 4)
