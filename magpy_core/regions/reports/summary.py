"""A region in figures, for reports. Key function: summarise."""

from __future__ import annotations

from collections.abc import Collection
from math import isfinite, isnan
from statistics import median

from magpy_core.findings import CaptureSummary, Compared, RegionSummary
from magpy_core.regions.region_protocol import RegionView
from magpy_core.regions.reports.captures import host_reads
from magpy_core.regions.reports.step_share import step_share
from magpy_core.regions.reports.unused import awaited, why_unused
from magpy_core.regions.timing.comparison import speedup_interval


def summarise(region: RegionView) -> RegionSummary:
    captures, times, log = region.captures, region.times, region.log
    complete = bool(captures) and not region.disabled and all(c.is_complete for c in captures)
    compiled = [c.parts for c in captures if not c.is_retired] if region.options.mode == "compiled" else []
    verdicts = [verdict for c in captures for verdict in c.verdicts]
    dropped = [verdict for c in {*times.retired} - {*captures} for verdict in c.verdicts]
    low, high = speedup_interval(times.calls.eager, times.calls.compiled) or (None, None)
    return RegionSummary(
        id=region.id,
        kind=region.kind,
        name=region.name,
        file=region.location.file,
        line=region.location.range.start.line + 1,
        calls=region.calls,
        captures=len(captures),
        complete=complete,
        # of a complete graph, such findings only show which data it depends on
        graph_breaks=0 if complete else sum(1 for f in log.findings.values() if f.code.startswith("MP1")),
        guards=max((len(c.guards) for c in captures), default=0),
        side_effects=max((len(c.replay.effects) + len(c.trace.writes.mutated) for c in captures), default=0),
        host_reads=host_reads(region),
        hits=region.hits,
        eager_ms=_ms(times.calls.eager),
        compiled_ms=_ms(times.calls.compiled),
        guard_ms=_ms(times.guard) or _ms([s for c in captures for s in c.guard_seconds]),
        compile_s=times.compile_seconds(captures),
        captures_after_step_3=log.captures_after_step_3,
        graphs=max((len(c.segments) for c in captures), default=0),
        unused=why_unused(region),
        verified=sum(not (v.unchecked or v.difference) for v in verdicts),
        unverified=[v.unchecked for v in verdicts if v.unchecked],
        wrong=sum(v.difference is not None for v in (*verdicts, *dropped)),
        samples=[
            Compared(
                s.step,
                _finite(s.verdict.apart),
                s.verdict.difference is not None,
                s.verdict.unchecked,
                *(_number(one) for one in s.verdict.losses or ()),
            )
            for s in sorted((s for c in {*captures, *times.retired} for s in c.samples), key=lambda one: one.step)
        ],
        kept=sum(c.is_kept for c in captures if not c.is_retired),
        parts=sum(parts for _, parts in compiled),
        parts_compiled=sum(done for done, _ in compiled),
        last_line=_last_line(region),
        awaited=awaited(region),
        step_share=step_share(region),
        speedup_low=round(low, 4) if low is not None else None,
        speedup_high=round(high, 4) if high is not None else None,
        recompiles=list(log.recompiles),
        per_capture=[
            CaptureSummary(len(c.guards), _ms(c.guard_seconds), c.hits, c.is_complete, c.compile_seconds) for c in captures
        ],
    )


def _last_line(region: RegionView) -> int:
    """The last line of statements that are a region; 0 for other regions."""
    if region.kind not in ("step", "stretch"):
        return 0
    code = region.target.__code__
    return max((end for _, end, _, _ in code.co_positions() if end is not None), default=0)


def _finite(number: float) -> float:
    """As JSON can have it."""
    return number if isfinite(number) else 1e308


def _number(value: float) -> float | None:
    """As JSON can have it; None for NaN."""
    return None if isnan(value) else max(-1e308, min(value, 1e308))


def _ms(seconds: Collection[float]) -> float | None:
    return round(median(seconds) * 1e3, 4) if seconds else None
