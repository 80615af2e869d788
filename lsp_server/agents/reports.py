"""A run's report as the answer of a tool: what matters most, with fixes. Key functions: checked, ran, verified."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from rich.text import Text

from lsp_server.agents.answers import Checked, FindingFix, OneFinding, Ran, Verified, VerifiedRegion
from lsp_server.cli.follow import Finished, last_lines
from lsp_server.cli.next_command import next_commands
from lsp_server.cli.program import judge
from lsp_server.features.fixes.exact import Fixes
from lsp_server.formats import brief, regions, run_table, run_verdict, step_text
from lsp_server.formats.verified import reasons
from lsp_server.formats.view import View, clean, cost, shorten
from magpy_core.findings import Finding, RegionSummary, Report

WRONG_RESULT = "MP914"
_MESSAGE = 1200  # characters
_SUMMARY = 30  # lines


@dataclass(frozen=True)
class Run:
    """A finished run. ``limit``: the most findings of an answer; ``facts``: it has facts, too."""

    finished: Finished
    limit: int
    facts: bool = False


def checked(run: Run) -> Checked:
    return Checked(**_common(run, lambda report, view: brief.lines(report, view)))


def ran(run: Run) -> Ran:
    report = run.finished.outcome.report
    step = report.step
    return Ran(
        **_common(run, _of_compiled),
        speed=step_text.line(report),
        speedup=step.shown_speedup if step is not None else None,
        verdict=step.verdict if step is not None else "unmeasured",
        compiled_steps=step.compiled if step is not None else 0,
        why_not=step_text.why_not(report),
    )


def verified(run: Run) -> Verified:
    found = [_verified(region) for region in run.finished.outcome.report.regions]
    found = [one for one in found if one.graphs or one.compared or one.not_compared]
    graphs, compared = sum(one.graphs for one in found), sum(one.compared for one in found)
    differ = sum(one.differ for one in found)
    common = _common(run, _of_compiled)
    verdict: Literal["agrees", "differs", "nothing compared"] = "agrees" if graphs or compared else "nothing compared"
    if differ or any(finding.code == WRONG_RESULT for finding in common["findings"]):
        verdict = "differs"
    return Verified(**common, verdict=verdict, graphs=graphs, compared=compared, differ=differ, regions=found)


def verified_whole(document: Mapping[str, Any], limit: int) -> Verified:
    """The verdict of whole runs; ``document``: as ``magpy-lsp verify --format json`` has it."""
    verdict: Literal["agrees", "differs", "nothing compared"] = "nothing compared"
    if document["verdict"] in ("equal", "rounding"):
        verdict = "agrees"
    elif document["verdict"] == "differs":
        verdict = "differs"
    calls = f"{document['compiled_calls']:,} of {document['calls']:,} calls ran compiled code"
    differences = map(run_verdict.difference, document["differences"][:limit])
    return Verified(
        outcome="ok",
        steps=document["steps"],
        summary=[clean(document["summary"]), *map(clean, document["not_compared"]), calls],
        findings=[],
        verdict=verdict,
        graphs=0,
        compared=0,
        differ=0,
        regions=[],
        differences=[shorten(clean(text), _MESSAGE) for text in differences],
    )


def _verified(region: RegionSummary) -> VerifiedRegion:
    samples = [one for one in region.samples if not one.unchecked]
    return VerifiedRegion(
        name=clean(region.name),
        graphs=region.verified,
        compared=len(samples),
        differ=sum(one.is_difference for one in samples),
        largest_difference=max((one.apart for one in samples), default=0.0),
        not_compared=[*map(clean, region.unverified), *reasons(region)],
    )


def _of_compiled(report: Report, view: View) -> Iterator[Text]:
    for region in report.regions:
        used = f"compiled code ran in {region.hits:,} of {region.calls:,} calls"
        why = f" ({region.unused})" if region.unused else ""
        faster = f", {region.shown_speedup:.2f}x" if region.shown_speedup is not None else ""
        where = f" ({view.path(region.file)}:{region.line})" if region.file else ""
        yield Text(f"{clean(region.name)}{where}: {used}{why}{faster}")
    yield run_table.total(report)


def _common(run: Run, lines: Callable[[Report, View], Iterator[Text]]) -> dict[str, Any]:
    """What all answers have."""
    outcome = run.finished.outcome
    judged = judge([run.finished])
    report, view = judged.report, replace(judged.view, in_detail=run.facts)
    shown = sorted(view.shown(report.findings), key=_most_severe_first)
    fixes = Fixes(report, run.finished.began_ns)
    summary = [text.plain for text in (*lines(report, view), *regions.totals(report, view))]
    return {
        "outcome": outcome.kind,
        "problem": problem(run.finished),
        "steps": report.steps,
        "summary": [line for line in summary if line and "`--details`" not in line][-_SUMMARY:],
        "findings": [_finding(finding, fixes) for finding in shown[: run.limit]],
        "findings_left_out": max(len(shown) - run.limit, 0),
        "facts": len(report.findings) - len(shown),
        "output": last_lines(run.finished) if outcome.kind != "ok" else [],
    }


def problem(finished: Finished) -> str:
    """Why the outcome of a run is not ok, and what to do."""
    if finished.outcome.kind == "ok":
        return ""
    return " ".join(filter(None, (clean(finished.outcome.message), *next_commands([finished]))))


def _most_severe_first(finding: Finding) -> tuple[int, float]:
    return finding.severity.rank, -(finding.cost_ms or finding.at_most_ms or 0.0)


def _finding(finding: Finding, fixes: Fixes) -> OneFinding:
    start = finding.location.range.start
    return OneFinding(
        code=finding.code,
        severity=finding.severity.value,
        message=shorten(clean(finding.message, lines=True), _MESSAGE),
        file=finding.location.file,
        line=start.line + 1,
        column=start.character + 1,
        function=finding.location.function,
        hint=shorten(clean(finding.advice, lines=True), _MESSAGE),
        times=finding.count,
        cost=cost([finding]),
        fixes=[FindingFix(**fix) for fix in fixes.of(finding)],
    )
