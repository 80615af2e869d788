"""``[tool.magpy.budgets]``: limits per region, and the findings for exceeded ones. Key types: Limits, Budgets.

A budget's finding is at the region's definition and names the figure, the limit and what contributes to the figure.
If the training step was measured, the ``min_speedup`` for every region applies to the step instead: time saved in one region
may be lost in another, and a small region need not gain anything.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import PurePath
from typing import Literal, TypeGuard

import attrs

from lsp_server.config_values import toml_key
from magpy_core.findings import (
    Finding,
    Kernel,
    Location,
    Position,
    Range,
    RegionSummary,
    Report,
    Severity,
    StepReport,
    TargetReport,
    Value,
)
from magpy_core.findings.kernels import most_spilled, of_a_call, total_launches, total_us

HOST_READS = ("MP101", "MP102", "MP109")
_PLACES_SHOWN = 3
_NOWHERE = Location("/", Range(Position(0, 0), Position(0, 0)))

Limit = float | None | Literal[False]
"""None: not set here. False: no limit, even if there is one for all regions."""


@attrs.frozen
class Limits:
    """One table of budgets; the fields are its keys."""

    graph_breaks: Limit = None
    recompiles: Limit = None
    guards: Limit = None
    side_effects: Limit = None
    host_syncs: Limit = None
    min_speedup: Limit = None
    kernels: Limit = None
    spills: Limit = None
    estimated_us: Limit = None

    def with_defaults(self, other: Limits) -> Limits:
        """These limits, completed by those of ``other``."""
        own = attrs.asdict(self)
        return Limits(**{k: v if (v := own[k]) is not None else getattr(other, k) for k in own})

    @property
    def of_target(self) -> list[str]:
        """The keys of the limits that are set and need the kernels of a target."""
        return [key for key in ("kernels", "spills", "estimated_us") if _is_set(getattr(self, key))]


@attrs.frozen
class Budgets:
    """Limits for every region, and by pattern (of a region's name, or its kind; the last match wins)."""

    every: Limits = attrs.field(factory=Limits)
    regions: dict[str, Limits] = attrs.field(factory=dict)

    def of(self, region: RegionSummary) -> Limits:
        limits = self.every
        for pattern, own in self.regions.items():
            if _matches(pattern, region):
                limits = own.with_defaults(limits)
        return limits

    def unused(self, regions: Iterable[RegionSummary]) -> list[str]:
        """Patterns that match none of ``regions``."""
        seen = list(regions)
        return [p for p in self.regions if not any(_matches(p, r) for r in seen)]


def _matches(pattern: str, region: RegionSummary) -> bool:
    return pattern == region.kind or fnmatchcase(region.name, pattern)


def check_budgets(report: Report, budgets: Budgets, *, compiled: bool) -> list[Finding]:
    """A finding for each exceeded budget and, if the run was ``compiled``, for each speedup that could not be measured."""
    found: list[Finding] = []
    least = budgets.every.min_speedup
    if report.step is not None and report.step.speedup is not None:
        budgets = attrs.evolve(budgets, every=attrs.evolve(budgets.every, min_speedup=None))
        if _is_set(least) and compiled:
            found += _step(report, report.step, least)
    for region in report.regions:
        limits = budgets.of(region)
        for code, sentence, values in _exceeded(region, limits, report, compiled):
            shown = tuple(Value(name, value) for name, value in values)
            found.append(Finding(code, sentence, location(region, report), region=region.id, values=shown))
    return found


def without_target(report: Report, budgets: Budgets) -> list[Finding]:
    """One finding, at the first region with limits for its kernels: a run without a target has none."""
    limited = [(region, keys) for region in report.regions if (keys := budgets.of(region).of_target)]
    if not limited:
        return []
    region, keys = limited[0]
    more = f" and {len(limited) - 1} more" if len(limited) > 1 else ""
    names = ", ".join(f"`{toml_key(key)}`" for key in keys)
    text = (
        f"{names} of {region.name}{more} {'was' if len(keys) == 1 else 'were'} not checked: this run compiles for no "
        "device. `magpy-lsp check --target cuda:sm_90` does."
    )
    at = location(region, report)
    return [Finding("MP507", text, at, region=region.id, severity_override=Severity.INFORMATION)]


def unmeasured(report: Report, budgets: Budgets) -> list[Finding]:
    """One finding, at the first region with a minimum speedup: a check compiles nothing, so it can't measure it."""
    limited = [region for region in report.regions if _is_set(budgets.of(region).min_speedup)]
    whole = _is_set(budgets.every.min_speedup)
    if not limited and whole:
        limited = report.regions[:1]
    if not limited:
        return []
    more = f" and {len(limited) - 1} more" if len(limited) > 1 else ""
    of = "the step" if whole else f"{limited[0].name}{more}"
    text = (
        f"`min-speedup` of {of} was not measured: a check compiles nothing. A compiled run "
        "(`magpy-lsp run`) times compiled and eager steps and calls."
    )
    at = location(limited[0], report)
    return [Finding("MP507", text, at, region=limited[0].id, severity_override=Severity.INFORMATION)]


def unknown_regions(
    regions: Sequence[RegionSummary], budgets: Budgets, file: str, lines: Mapping[str, int]
) -> list[Finding]:
    """Budgets whose pattern matches no region, at their line in the table. Information only: another program may have it."""
    names = ", ".join(f"`{r.name}`" for r in regions[:6]) or "none"
    found = []
    for pattern in budgets.unused(regions):
        line = lines.get(pattern, 1)
        at = Location(file, Range(Position(line - 1, 0), Position(line, 0)))
        text = f"The budget `{pattern}` matches no region of this run; its regions: {names}."
        found.append(Finding("MP507", text, at, severity_override=Severity.INFORMATION))
    return found


def location(region: RegionSummary, report: Report) -> Location:
    """The region's definition; for a region without a file (created by ``exec``), its first finding."""
    if PurePath(region.file).is_absolute():
        at = Position(max(region.line - 1, 0), 0)
        return Location(region.file, Range(at, at))
    own = next((f.location for f in report.findings if f.region == region.id), None)
    return own or next((f.location for f in report.findings), _NOWHERE)


_Exceeded = tuple[str, str, tuple[tuple[str, str], ...]]


def _exceeded(region: RegionSummary, limits: Limits, report: Report, compiled: bool) -> Iterator[_Exceeded]:
    counted: tuple[tuple[str, str, Limit, float, str], ...] = (
        ("MP501", "graph break", limits.graph_breaks, region.graph_breaks, ""),
        ("MP502", "recompile", limits.recompiles, region.captures_after_step_3, " after step 3"),
        ("MP503", "guard", limits.guards, region.guards, ""),
        ("MP504", "side effect", limits.side_effects, region.side_effects, ""),
    )
    for code, noun, limit, figure, when in counted:
        if _is_set(limit) and figure > limit:
            what = f"{figure:,g} {noun}{'' if figure == 1 else 's'}{when}"
            yield code, f"{region.name} has {what}; its budget is {limit:,g}.", _contributors(code, region, report)
    syncs = region.host_reads * region.calls / max(report.steps, 1)
    if _is_set(limits.host_syncs) and syncs > limits.host_syncs:
        text = f"{region.name} waits for tensor values {syncs:,.3g} times per step; its budget is {limits.host_syncs:,g}."
        yield "MP505", text, tuple(("read at", place) for place in _places(region, report)[:_PLACES_SHOWN])
    if _is_set(limits.min_speedup) and compiled:
        yield from _speedup(region, limits.min_speedup)
    if report.kernels is not None and limits.of_target:
        yield from _kernels(region, limits, report.kernels)


def _kernels(region: RegionSummary, limits: Limits, target: TargetReport) -> Iterator[_Exceeded]:
    """What one call of the region launches, with its backward pass."""
    for problem in target.problems:
        if problem.region == region.id:
            names = ", ".join(f"`{toml_key(key)}`" for key in limits.of_target)
            yield "MP507", f"{names} of {region.name} can't be checked on {target.device}: {problem.message}", ()
            return
    used = of_a_call(kernel for kernel in target.kernels if kernel.region == region.id)
    launches, spilled, us = total_launches(used), most_spilled(used), total_us(used)
    if _is_set(limits.kernels) and launches > limits.kernels:
        what = f"launches {launches:,} kernel{'' if launches == 1 else 's'} on {target.device}"
        graphs = tuple((graph, f"{total_launches(of):,}") for graph, of in _by_graph(used).items())
        yield "MP508", f"{region.name} {what}; its budget is {limits.kernels:,g}.", graphs
    if _is_set(limits.spills) and spilled > limits.spills:
        worst = next(kernel for kernel in used if most_spilled([kernel]) == spilled)
        article = "an" if worst.graph[0] in "aeiou" else "a"
        what = f"has {article} {worst.graph} kernel on {target.device} that spills {spilled:,} bytes per thread"
        yield "MP509", f"{region.name} {what}; its budget is {limits.spills:,g}.", (("kernel", worst.name), *_lines(worst))
    if _is_set(limits.estimated_us) and us > limits.estimated_us:
        what = f"takes at least {us:,.1f} µs on {target.device}, by its published figures"
        slowest = sorted(used, key=lambda kernel: -kernel.total_us)[:_PLACES_SHOWN]
        times = tuple((kernel.name, f"{kernel.total_us:,.1f} µs") for kernel in slowest)
        yield "MP510", f"{region.name} {what}; its budget is {limits.estimated_us:,g} µs.", times


def _by_graph(kernels: Iterable[Kernel]) -> dict[str, list[Kernel]]:
    found: dict[str, list[Kernel]] = {}
    for kernel in kernels:
        found.setdefault(kernel.graph, []).append(kernel)
    return found


def _lines(kernel: Kernel) -> list[tuple[str, str]]:
    return [("computes", f"{PurePath(at.file).name}:{at.line}") for at in kernel.lines[:_PLACES_SHOWN]]


def _is_set(limit: Limit) -> TypeGuard[float]:
    return limit is not None and limit is not False


def _speedup(region: RegionSummary, least: float) -> Iterator[_Exceeded]:
    if region.speedup_low is None or region.speedup_high is None:
        why = "it was never compiled" if not region.hits else "it has too few steady calls"
        yield "MP507", f"The speedup of {region.name} (minimum {least:g}x) was not measured: {why} in this run.", ()
    elif region.speedup_high < least:
        interval = f"{region.speedup_low:.2f}x to {region.speedup_high:.2f}x"
        text = f"The speedup of {region.name} is {interval} (95% confidence); its minimum is {least:g}x."
        times = (("eager", f"{region.eager_ms} ms"), ("compiled", f"{region.compiled_ms} ms"))
        yield "MP506", text, times


def _step(report: Report, step: StepReport, least: float) -> Iterator[Finding]:
    """The finding for the step's speedup: at the first region, since a step has no definition."""
    at = location(report.regions[0], report) if report.regions else _NOWHERE
    if step.speedup_low is None or step.speedup_high is None:
        text = f"The speedup of the step (minimum {least:g}x) was not measured: too few steps were timed in this run."
        yield Finding("MP507", text, at)
    elif step.speedup_high < least:
        interval = f"{step.speedup_low:.2f}x to {step.speedup_high:.2f}x"
        text = f"The speedup of the step is {interval} (95% confidence); its minimum is {least:g}x."
        times = (Value("eager", f"{step.plain_ms} ms"), Value("compiled", f"{step.compiled_ms} ms"))
        yield Finding("MP506", text, at, values=times)


def _places(region: RegionSummary, report: Report) -> list[str]:
    """Where Python reads a tensor value, according to the findings."""
    reads = {f.location for f in report.findings if f.region == region.id and f.code in HOST_READS}
    return [f"{PurePath(at.file).name}:{at.range.start.line + 1}" for at in sorted(reads)]


def _contributors(code: str, region: RegionSummary, report: Report) -> tuple[tuple[str, str], ...]:
    """What contributes to the figure, as far as the report shows it."""
    if code == "MP501":
        breaks = [f for f in report.findings if f.region == region.id and f.code.startswith(("MP1", "MPD1"))]
        return tuple((f.code, f"{PurePath(f.location.file).name}:{f.location.range.start.line + 1}") for f in breaks[:3])
    if code == "MP502":
        return tuple((r.name, f"{r.old} -> {r.new}") for r in region.recompiles[-3:])
    return ()
