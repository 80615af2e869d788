"""Findings against the program's measured step: which share of it they cost, or can cost at most. Key function: relate."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from magpy_core.findings import Finding, Severity
from magpy_core.regions.region_protocol import RegionView
from magpy_core.regions.timing.steps import Steps

_FOR_GOOD = ("MP203", "MP901", "MP902", "MP915", "MP916")  # the region runs in eager mode from then on


def relate(regions: Sequence[RegionView], others: Iterable[Finding], steps: Steps) -> Iterator[Finding]:
    """Writes what is known of the step into findings of ``regions`` and ``others``; returns those. A warning about a region
    whose cost no clock can show gets the time that the region takes in eager mode: what can be saved is a part of it."""
    if not steps.are_whole:
        return  # steps of several regions, none of which is the whole
    plain, both = steps.plain_median(), steps.medians()
    compiled = both[1] if both is not None else plain  # in a check, the only one
    for region in regions:
        takes = None if region.is_cut else region.times.passes.plain_per_step()  # some stretches are compiled
        for finding in region.findings.values():
            if finding.cost_ms is not None and compiled is not None:
                _relate_to(finding, _ms(compiled))
                yield finding
            elif takes is not None and plain is not None and _keeps_plain(finding, steps.count):
                finding.at_most_ms, finding.step_ms = _ms(min(takes, plain)), _ms(plain)
                yield finding
    for finding in others:
        if finding.cost_ms is not None and compiled is not None:
            _relate_to(finding, _ms(compiled))
            yield finding


def _relate_to(finding: Finding, step_ms: float) -> None:
    """What is a part of a step costs no more than the step, although the two were measured in different calls."""
    finding.step_ms = step_ms
    if finding.cost_ms is not None and not finding.code.startswith("MP2"):
        finding.cost_ms = min(finding.cost_ms, step_ms)


def _keeps_plain(finding: Finding, steps: int) -> bool:
    """Whether the time of its region limits what it costs in a step. It doesn't if the finding is about other calls of the
    region than most: those of an evaluation, which may take any time."""
    if finding.cost_ms is not None or finding.severity.rank > Severity.WARNING.rank:
        return False
    return finding.code.startswith(_FOR_GOOD) or (finding.code.startswith("MP1") and 2 * finding.steps > steps)


def _ms(seconds: float) -> float:
    return round(seconds * 1e3, 4)
