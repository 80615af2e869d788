"""``[tool.magpy.budgets]``: limits per region, and the findings for those that a run broke. Key types: Limits, Budgets.

A budget's finding stands at the region's definition and names the figure, the limit and what it is made of.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import PurePath
from typing import Literal, TypeGuard

import attrs

from magpy_core.findings import Finding, Location, Position, Range, RegionSummary, Report, Severity, Value

HOST_READS = ("MP101", "MP102", "MP109")
_PLACES_SHOWN = 3

Limit = float | None | Literal[False]
"""None: not set here. False: no limit, whatever is set for all regions."""


@attrs.frozen
class Limits:
    """What one table of budgets says; the names are its keys."""

    graph_breaks: Limit = None
    recompiles: Limit = None
    guards: Limit = None
    side_effects: Limit = None
    host_syncs: Limit = None
    min_speedup: Limit = None

    def over(self, other: Limits) -> Limits:
        """These limits, and ``other``'s where nothing is set here."""
        mine = attrs.asdict(self)
        return Limits(**{k: v if (v := mine[k]) is not None else getattr(other, k) for k in mine})


@attrs.frozen
class Budgets:
    """Limits for every region, and those for regions that a pattern fits: their name, or their kind (the later one wins)."""

    every: Limits = attrs.field(factory=Limits)
    regions: dict[str, Limits] = attrs.field(factory=dict)

    def of(self, region: RegionSummary) -> Limits:
        limits = self.every
        for pattern, own in self.regions.items():
            if _fits(pattern, region):
                limits = own.over(limits)
        return limits

    def unused(self, regions: Iterable[RegionSummary]) -> list[str]:
        """Patterns that none of ``regions`` fits."""
        seen = list(regions)
        return [p for p in self.regions if not any(_fits(p, r) for r in seen)]


def _fits(pattern: str, region: RegionSummary) -> bool:
    return pattern == region.kind or fnmatchcase(region.name, pattern)


def judge(report: Report, budgets: Budgets, *, compiled: bool) -> list[Finding]:
    """A finding for each budget that is broken or, where ``compiled`` says that it was measured, could not be judged."""
    found = []
    for region in report.regions:
        limits = budgets.of(region)
        for code, sentence, values in _broken(region, limits, report, compiled):
            shown = tuple(Value(name, value) for name, value in values)
            found.append(Finding(code, sentence, location(region, report), region=region.id, values=shown))
    return found


def unmeasured(report: Report, budgets: Budgets) -> list[Finding]:
    """That a check, which compiles nothing, says nothing about the speed-up that is asked for: once, at the first region."""
    asked = [region for region in report.regions if _set(budgets.of(region).min_speedup)]
    if not asked:
        return []
    more = f" and {len(asked) - 1} more" if len(asked) > 1 else ""
    text = (
        f"`min-speedup` of {asked[0].name}{more} was not measured: a check compiles nothing. A compiled run "
        "(`magpy-lsp run`) times compiled and plain calls in turn."
    )
    at = location(asked[0], report)
    return [Finding("MP507", text, at, region=asked[0].id, severity_override=Severity.INFORMATION)]


def unknown_regions(
    regions: Sequence[RegionSummary], budgets: Budgets, file: str, lines: Mapping[str, int]
) -> list[Finding]:
    """Budgets of regions that were not seen, at their line in the table. An information: another program may have them."""
    names = ", ".join(f"`{r.name}`" for r in regions[:6]) or "none"
    found = []
    for pattern in budgets.unused(regions):
        line = lines.get(pattern, 1)
        at = Location(file, Range(Position(line - 1, 0), Position(line, 0)))
        text = f"There is a budget for a region `{pattern}`, but no such region in this run; seen: {names}."
        found.append(Finding("MP507", text, at, severity_override=Severity.INFORMATION))
    return found


def location(region: RegionSummary, report: Report) -> Location:
    """The region's definition. One without a file (made by ``exec``) is told where its first finding is."""
    if PurePath(region.file).is_absolute():
        at = Position(max(region.line - 1, 0), 0)
        return Location(region.file, Range(at, at))
    own = next((f.location for f in report.findings if f.region == region.id), None)
    return own or next((f.location for f in report.findings), Location("/", Range(Position(0, 0), Position(0, 0))))


_Broken = tuple[str, str, tuple[tuple[str, str], ...]]


def _broken(region: RegionSummary, limits: Limits, report: Report, compiled: bool) -> Iterator[_Broken]:
    counted: tuple[tuple[str, str, Limit, float, str], ...] = (
        ("MP501", "graph break", limits.graph_breaks, region.graph_breaks, ""),
        ("MP502", "capture", limits.recompiles, region.captures_after_step_3, " after step 3"),
        ("MP503", "guard", limits.guards, region.guards, ""),
        ("MP504", "side effect", limits.side_effects, region.side_effects, ""),
    )
    for code, noun, limit, figure, when in counted:
        if _set(limit) and figure > limit:
            what = f"{figure:,g} {noun}{'' if figure == 1 else 's'}{when}"
            yield code, f"{region.name} has {what}, its budget is {limit:,g}.", _blame(code, region, report)
    syncs = region.host_reads * region.calls / max(report.steps, 1)
    if _set(limits.host_syncs) and syncs > limits.host_syncs:
        text = f"{region.name} waits for tensors' values {syncs:,.3g} times a step, its budget is {limits.host_syncs:,g}."
        yield "MP505", text, tuple(("read at", place) for place in _places(region, report)[:_PLACES_SHOWN])
    if _set(limits.min_speedup) and compiled:
        yield from _speedup(region, limits.min_speedup)


def _set(limit: Limit) -> TypeGuard[float]:
    return limit is not None and limit is not False


def _speedup(region: RegionSummary, least: float) -> Iterator[_Broken]:
    if region.speedup_low is None or region.speedup_high is None:
        why = "it was never compiled" if not region.hits else "it had too few steady calls"
        yield "MP507", f"{region.name}: whether it is {least:g} times as fast can't be said, for {why} in this run.", ()
    elif region.speedup_high < least:
        interval = f"{region.speedup_low:.2f}x to {region.speedup_high:.2f}x"
        text = f"Compiling makes {region.name} {interval} as fast (95 % confidence), its minimum is {least:g}x."
        times = (("eager", f"{region.eager_ms} ms"), ("compiled", f"{region.compiled_ms} ms"))
        yield "MP506", text, times


def _places(region: RegionSummary, report: Report) -> list[str]:
    """Where Python reads a tensor's value, as far as there are findings for it."""
    reads = {f.location for f in report.findings if f.region == region.id and f.code in HOST_READS}
    return [f"{PurePath(at.file).name}:{at.range.start.line + 1}" for at in sorted(reads)]


def _blame(code: str, region: RegionSummary, report: Report) -> tuple[tuple[str, str], ...]:
    """What the figure is made of, as far as the report knows it."""
    if code == "MP501":
        breaks = [f for f in report.findings if f.region == region.id and f.code.startswith(("MP1", "MPD1"))]
        return tuple((f.code, f"{PurePath(f.location.file).name}:{f.location.range.start.line + 1}") for f in breaks[:3])
    if code == "MP502":
        return tuple((r.name, f"{r.old} -> {r.new}") for r in region.recompiles[-3:])
    return ()
