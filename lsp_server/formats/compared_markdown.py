"""A comparison of two reports in Markdown, for a comment on a pull request. Key function: text."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping

from lsp_server.comparison import Comparison, RegionChange
from lsp_server.formats import compared_kernels
from lsp_server.formats.compared import figures, total
from lsp_server.formats.markdown import ROWS, code, escape, finding_row, table
from lsp_server.formats.view import View, count
from lsp_server.kernel_comparison import GraphChange
from magpy_core.findings import Finding, RegionSummary, Severity


def text(comparison: Comparison, view: View, fail_on: Severity, environ: Mapping[str, str] = os.environ) -> str:
    mark = "❌" if comparison.worse(fail_on) else "✅"
    parts = ["## MagPy: comparison", f"{mark} {escape(total(comparison).plain)}"]
    for title, findings in (("Appeared", comparison.appeared), ("Disappeared", comparison.disappeared)):
        if findings:
            parts += [f"### {title}", _findings(findings, view, environ)]
    regions = [*_regions(comparison, view)]
    if regions:
        parts += ["### Regions", table(("region", "what", "change"), iter(regions))]
    if comparison.step:
        rows = ((escape(one.label), escape(figures(one))) for one in comparison.step)
        parts += ["### Step", table(("what", "change"), rows)]
    if comparison.kernels is not None:
        parts.append(f"### {escape(compared_kernels.title(comparison.kernels))}")
        parts += map(_graph, comparison.kernels.graphs)
        parts += ["No difference."] if not comparison.kernels.graphs else []
    return "\n\n".join(parts) + "\n"


def _findings(findings: list[Finding], view: View, environ: Mapping[str, str]) -> str:
    shown = table(("", "code", "where", "what"), (finding_row(one, view, environ) for one in findings[:ROWS]))
    return shown + (f"\n\n… and {count(len(findings) - ROWS, 'finding')} more." if len(findings) > ROWS else "")


def _regions(comparison: Comparison, view: View) -> Iterator[tuple[str, str, str]]:
    for change in comparison.changed:
        name = _name(change.region, view)
        for what, figure in _changes(change):
            yield name, escape(what), escape(figure)
    for region in comparison.new_regions:
        yield _name(region, view), "new", ""
    for region in comparison.removed_regions:
        yield _name(region, view), "removed", ""


def _changes(change: RegionChange) -> Iterator[tuple[str, str]]:
    if change.became_incomplete:
        yield "graph", "no longer complete"
    if change.became_complete:
        yield "graph", "now complete"
    for one in change.changes:
        yield one.label, figures(one)


def _name(region: RegionSummary, view: View) -> str:
    where = f" {code(f'{view.uri_path(region.file)}:{region.line}')}" if region.file and region.line else ""
    return f"**{escape(region.name)}** ({escape(region.kind)}){where}"


def _graph(graph: GraphChange) -> str:
    """A list; what belongs to an entry is below it."""
    head = f"**{escape(graph.region)}**, {escape(graph.graph)}{' ❌' if graph.worse else ''}"
    rows = []
    for line, _ in compared_kernels.of_graph(graph):
        inner = line.startswith("  ")
        rows.append(f"{'  ' if inner else ''}- {escape(line.strip())}")
    return "\n".join((head, "", *rows))
