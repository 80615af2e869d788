"""Summaries of a run as a line or a table of text. Key functions: region_line, findings_line, report_text."""

from __future__ import annotations

import io
from collections.abc import Iterable
from typing import TYPE_CHECKING

from magpy_core.findings import RegionSummary, Report, Severity, StepReport

if TYPE_CHECKING:
    from rich.console import Console

    from lsp_server.formats.view import View

_WIDTH = 110


def count(number: int, noun: str, plural: str | None = None) -> str:
    return f"{number} {noun if number == 1 else plural or noun + 's'}"


def region_line(region: RegionSummary) -> str:
    """``1 graph · 0 breaks · 14 guards · 2 side effects``, with the speedup if measured."""
    if region.engine == "dynamo":  # its versions run several graphs, and it reports no side effects
        parts = ["torch.compile", count(region.graphs, "graph"), count(region.graph_breaks, "break")]
        parts += [count(len(region.recompiles), "recompile"), count(region.guards, "guard")]
        return " · ".join(parts + _times(region))
    parts = [
        count(region.captures, "graph"),
        count(region.graph_breaks, "break"),
        count(region.guards, "guard"),
        count(region.side_effects, "side effect"),
    ]
    return " · ".join(parts + _times(region))


def _times(region: RegionSummary) -> list[str]:
    measured = region.eager_ms is not None and region.compiled_ms is not None
    times = [f"{region.eager_ms:.2f} → {region.compiled_ms:.2f} ms"] if measured else []
    return times + ([f"{region.shown_speedup:.2f}x"] if region.shown_speedup is not None else [])


def total_line(regions: Iterable[RegionSummary], step: StepReport | None = None) -> str:
    """The same for all regions of a program. Speedup: the step's, or if none was measured all regions', with times weighted
    by calls."""
    seen = list(regions)
    parts = [
        count(sum(r.captures for r in seen), "graph"),
        count(sum(r.graph_breaks for r in seen), "break"),
        count(sum(r.guards for r in seen), "guard"),
        count(sum(r.side_effects for r in seen), "side effect"),
    ]
    if step is not None and step.verdict != "unmeasured":
        return " · ".join([*parts, *([] if step.shown_speedup is None else [f"step {step.shown_speedup:.2f}x"])])
    certain = [r for r in seen if r.shown_speedup is not None]
    timed = [(r.eager_ms * r.calls, r.compiled_ms * r.calls) for r in certain if r.eager_ms and r.compiled_ms]
    if timed and len(timed) == len(seen):
        parts.append(f"{sum(e for e, _ in timed) / sum(c for _, c in timed):.2f}x")
    return " · ".join(parts)


def severity_counts(findings: Iterable[Severity]) -> dict[str, int]:
    counts = {severity.value: 0 for severity in Severity}
    for severity in findings:
        counts[severity.value] += 1
    return counts


def findings_line(counts: dict[str, int]) -> str:
    """``2 warnings · 5 notes``; hints (mostly guards) come last."""
    nouns = (("error", "error"), ("warning", "warning"), ("information", "note"), ("hint", "hint"))
    parts = [count(counts[key], noun) for key, noun in nouns if counts.get(key)]
    return " · ".join(parts) or "no findings"


def report_text(report: Report, view: View, *, table: bool) -> str:
    """The end of the command line's report: the regions, or for a compiled run the step and the regions' table."""
    # rich is imported here, so that the server starts faster.
    from rich.console import Console

    from lsp_server.formats import brief, regions, run_table, step_table

    out = Console(file=io.StringIO(), color_system=None, width=_WIDTH, force_terminal=False)
    if table and report.regions:
        for block in step_table.blocks(report):
            out.print(block)
        out.print(run_table.table(report, view))
        for line in run_table.recompiles(report, view):
            out.print(line, soft_wrap=True)
        out.print(run_table.total(report), soft_wrap=True)
    else:
        for line in brief.lines(report, view):
            out.print(line, soft_wrap=True)
    out.print(next(regions.totals(report, view)), soft_wrap=True)
    if report.stopped_after is not None:
        out.print(f"The program was stopped after {count(report.stopped_after, 'step')}.", soft_wrap=True)
    return _written(out)


def comparison_text(report: Report) -> str:
    """The end of the command line's report for a comparison of both engines."""
    from rich.console import Console

    from lsp_server.formats import engines
    from lsp_server.formats.view import View

    out = Console(file=io.StringIO(), color_system=None, width=_WIDTH, force_terminal=False)
    out.print(engines.table(report, View()))
    out.print(engines.NOTE, soft_wrap=True)
    return _written(out)


def _written(out: Console) -> str:
    assert isinstance(out.file, io.StringIO)
    return "\n".join(line.rstrip() for line in out.file.getvalue().rstrip().split("\n"))
