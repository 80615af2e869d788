"""Compares two reports of one program: findings, regions, the training step, kernels. Key types: Comparison, RegionChange.

Findings match by fingerprint, or in a report without fingerprints by code, file name, function and message. Regions match
by kind, name and file name, in order of appearance if several agree.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Any

from lsp_server.kernel_comparison import KernelComparison, compare_kernels
from lsp_server.measures import Change, Measure, changes
from magpy_core.findings import Finding, RegionSummary, Report, Severity, StepReport, TargetReport

MEASURES: tuple[Measure[RegionSummary], ...] = (
    Measure("graph breaks", lambda r: r.graph_breaks, exact=True),
    Measure("recompiles after step 3", lambda r: r.captures_after_step_3, exact=True),
    Measure("guards", lambda r: r.guards, judged=False),
    Measure("side effects", lambda r: r.side_effects, judged=False),
    Measure("eager", lambda r: r.eager_ms, 0.02, judged=False, unit="ms"),
    Measure("compiled", lambda r: r.compiled_ms, 0.02, unit="ms"),
    Measure("guard check", lambda r: r.guard_ms, 0.02, unit="ms"),
    Measure("compiling", lambda r: r.compile_s, 1.0, unit="s"),
)
STEP_MEASURES: tuple[Measure[StepReport], ...] = (
    Measure("plain", lambda s: s.plain_ms, 0.02, judged=False, unit="ms"),
    Measure("compiled", lambda s: s.compiled_ms, 0.02, unit="ms"),
    Measure("waiting", lambda s: s.wait_s, 1.0, judged=False, unit="s"),
)


@dataclass(frozen=True)
class RegionChange:
    """The differences of one region. ``became_incomplete``: only the old report has a complete graph for it."""

    region: RegionSummary
    changes: tuple[Change, ...] = ()
    became_incomplete: bool = False
    became_complete: bool = False

    @property
    def worse(self) -> bool:
        return self.became_incomplete or any(c.worse for c in self.changes)

    def to_json(self) -> dict[str, Any]:
        return {
            **_named(self.region),
            "graph": "lost" if self.became_incomplete else "won" if self.became_complete else "as before",
            "changes": [c.to_json() for c in self.changes],
            "worse": self.worse,
        }


@dataclass
class Comparison:
    appeared: list[Finding]
    disappeared: list[Finding]
    unchanged: int
    pairs: list[tuple[RegionSummary, RegionSummary]] = field(default_factory=list)  # each region before and now
    changed: list[RegionChange] = field(default_factory=list)
    new_regions: list[RegionSummary] = field(default_factory=list)
    removed_regions: list[RegionSummary] = field(default_factory=list)
    step: tuple[Change, ...] = ()
    kernels: KernelComparison | None = None  # of reports that both have a target

    @property
    def slower_step(self) -> bool:
        return any(c.worse for c in self.step)

    def worse(self, fail_on: Severity) -> bool:
        found = any(f.severity.rank <= fail_on.rank for f in self.appeared)
        kernels = self.kernels is not None and self.kernels.worse
        return found or self.slower_step or kernels or any(c.worse for c in self.changed)

    def to_json(self, fail_on: Severity) -> dict[str, Any]:
        return {
            "version": "1.0",
            "worse": self.worse(fail_on),
            "findings": {
                "appeared": [f.to_json() for f in self.appeared],
                "gone": [f.to_json() for f in self.disappeared],
                "unchanged": self.unchanged,
            },
            "regions": {
                "appeared": [_named(r) for r in self.new_regions],
                "gone": [_named(r) for r in self.removed_regions],
                "changed": [c.to_json() for c in self.changed],
            },
            "step": [c.to_json() for c in self.step],
            **({"kernels": self.kernels.to_json()} if self.kernels is not None else {}),
        }


def _named(region: RegionSummary) -> dict[str, Any]:
    return {"kind": region.kind, "name": region.name, "file": region.file, "line": region.line}


@dataclass(frozen=True)
class Loaded:
    """A report, and the fingerprints of its findings (None for a finding without one)."""

    report: Report
    fingerprints: list[str | None]

    @staticmethod
    def from_json(data: dict[str, Any]) -> Loaded:
        """``data``: a report, or what ``magpy-lsp kernels`` writes. Raises KeyError, TypeError, ValueError or AttributeError
        if it is neither."""
        if "findings" not in data and "launch_us" in data:
            return Loaded(Report("", kernels=TargetReport.from_json(data)), [])
        prints = [finding.get("fingerprint") for finding in data["findings"]]
        if any(not isinstance(one, (str, type(None))) for one in prints):
            raise TypeError("a fingerprint is not text")
        return Loaded(Report.from_json(data), prints)


def compare(old: Loaded, new: Loaded, threshold: float) -> Comparison:
    """``threshold`` 0.2: a time that rose by more than a fifth counts as slower."""
    by_fingerprint = all(p is not None for p in [*old.fingerprints, *new.fingerprints])
    before, after = (
        [_key(f, p, by_fingerprint) for f, p in zip(r.report.findings, r.fingerprints, strict=True)] for r in (old, new)
    )
    appeared = _unmatched(new.report.findings, after, Counter(before))
    disappeared = _unmatched(old.report.findings, before, Counter(after))
    result = Comparison(appeared, disappeared, len(after) - len(appeared))
    result.pairs, result.new_regions, result.removed_regions = _paired(old.report.regions, new.report.regions)
    changed = (_region_change(a, b, threshold) for a, b in result.pairs)
    result.changed = [c for c in changed if c.changes or c.became_incomplete or c.became_complete]
    if old.report.step is not None and new.report.step is not None:
        result.step = changes(STEP_MEASURES, old.report.step, new.report.step, threshold)
    if old.report.kernels is not None and new.report.kernels is not None:
        same = {before.id: now.id for before, now in result.pairs}
        result.kernels = compare_kernels(old.report.kernels, new.report.kernels, same, threshold)
    return result


def _key(finding: Finding, fingerprint: str | None, by_fingerprint: bool) -> Hashable:
    if by_fingerprint:
        return fingerprint
    return finding.code, PurePath(finding.location.file).name, finding.location.function, finding.message


def _unmatched(findings: Iterable[Finding], keys: list[Hashable], others: Counter[Hashable]) -> list[Finding]:
    """The findings without a counterpart in ``others``."""
    left = Counter(others)
    out = []
    for finding, key in zip(findings, keys, strict=True):
        if left[key] > 0:
            left[key] -= 1
        else:
            out.append(finding)
    return out


def _paired(
    old: list[RegionSummary], new: list[RegionSummary]
) -> tuple[list[tuple[RegionSummary, RegionSummary]], list[RegionSummary], list[RegionSummary]]:
    def key(region: RegionSummary) -> Hashable:
        return region.kind, region.name, PurePath(region.file).name

    waiting: dict[Hashable, list[RegionSummary]] = defaultdict(list)
    for region in old:
        waiting[key(region)].append(region)
    pairs, appeared = [], []
    for region in new:
        if waiting[key(region)]:
            pairs.append((waiting[key(region)].pop(0), region))
        else:
            appeared.append(region)
    return pairs, appeared, [region for left in waiting.values() for region in left]


def _region_change(old: RegionSummary, new: RegionSummary, threshold: float) -> RegionChange:
    figures = changes(MEASURES, old, new, threshold)
    return RegionChange(new, figures, old.complete and not new.complete, new.complete and not old.complete)
