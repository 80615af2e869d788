"""What a region reports: its findings, each once, and why it was captured again. Key types: RegionLog, Listeners."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from magpy_core.findings import Finding, Recompile
from magpy_core.regions.step_counts import StepCounts

if TYPE_CHECKING:
    from magpy_core.capture.build import Capture
    from magpy_core.regions.region import Region


@dataclass(frozen=True)
class Listeners:
    """``on_finding``: a finding is new, or its counts have changed. ``on_region``: a region was recorded. ``step``: the
    program's current step."""

    on_finding: Callable[[Finding], None] | None = None
    on_region: Callable[[Region], None] | None = None
    step: Callable[[], int] = lambda: 0


class RegionLog:
    """Findings by key, recompiles in order. ``causes``: what makes the next recording necessary."""

    def __init__(self, listeners: Listeners) -> None:
        self.listeners = listeners
        self.findings: dict[Any, Finding] = {}
        self.recompiles: list[Recompile] = []
        self.causes: list[Finding] = []
        self.captures_after_step_3 = 0
        self.counts = StepCounts()

    def add(self, finding: Finding) -> Finding:
        """Report ``finding``, or that one like it was found again; returns the one that is kept."""
        known = self.findings.get(finding.key) or next((f for f in self.findings.values() if is_repeat(finding, f)), None)
        if known is None:
            known = self.findings[finding.key] = finding
        else:
            merge(known, finding)
        self.counts.found(known)
        self.notify([known])
        return known

    def notify(self, findings: Iterable[Finding]) -> None:
        if self.listeners.on_finding is not None:
            for finding in findings:
                self.listeners.on_finding(finding)

    def recorded(self, region: Region, capture: Capture | None, findings: Iterable[Finding]) -> None:
        """A monitored run of ``region`` has become ``capture``, or can't be captured."""
        self.counts.holds(capture, [self.add(finding) for finding in findings])
        if capture is not None and self.listeners.step() >= 3:
            self.captures_after_step_3 += 1

    def stepped(self, calls: int, *, plain: bool) -> None:
        """A step of the program has ended."""
        self.notify(finding for finding in self.counts.stepped(calls, plain=plain) if finding.steps > 1)

    def clear(self) -> None:
        self.findings.clear()
        self.recompiles.clear()


def is_repeat(finding: Finding, known: Finding) -> bool:
    """Whether a recompile has been reported before: of the same value, read at the same place."""
    return (
        finding.code == known.code == "MP201"
        and finding.location == known.location
        and finding.region == known.region
        and finding.severity == known.severity
        and finding.values[0].name == known.values[0].name
    )


def merge(known: Finding, finding: Finding) -> None:
    """Count ``finding`` as one more of ``known``."""
    new = tuple(v for v in finding.values if v not in known.values)
    if new and finding.code in ("MP101", "MP201"):
        known.values = (*known.values[:3], new[-1])  # how it began, and the last outcome or change
    if finding.severity.rank < known.severity.rank:
        known.severity_override = finding.severity_override  # the first was warm-up; it goes on
    known.count += 1
