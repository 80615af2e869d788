"""A comparison of two reports as text. Key function: lines."""

from __future__ import annotations

from collections.abc import Iterator

from rich.text import Text

from lsp_server.comparison import Comparison, RegionChange
from lsp_server.formats import compared_kernels, guards
from lsp_server.formats.view import View, clean, count
from lsp_server.measures import Change
from magpy_core.findings import Finding, RegionSummary


def lines(comparison: Comparison, view: View) -> Iterator[Text]:
    for title, findings, style in (
        ("Appeared", comparison.appeared, "bold red"),
        ("Disappeared", comparison.disappeared, "bold green"),
    ):
        if findings:
            yield Text(f"{title}:", style)
            yield from _findings(findings, view)
            yield Text()
    if comparison.changed or comparison.new_regions or comparison.removed_regions:
        yield Text("Regions:", "bold")
        for change in comparison.changed:
            yield from _region(change, view)
        for region in comparison.new_regions:
            yield Text.assemble("  ", _name(region, view), ": new")
        for region in comparison.removed_regions:
            yield Text.assemble("  ", _name(region, view), ": removed")
        yield Text()
    if comparison.step:
        yield Text("Step:", "bold")
        yield from map(_change, comparison.step)
        yield Text()
    if comparison.kernels is not None:
        yield from compared_kernels.lines(comparison.kernels)
    yield total(comparison)


def _findings(findings: list[Finding], view: View) -> Iterator[Text]:
    others, guard_findings = guards.split(findings)
    for line in (*map(view.header, others), *guards.grouped(guard_findings, view)):
        yield Text.assemble("  ", line)


def _name(region: RegionSummary, view: View) -> Text:
    where = f" at {view.path(region.file)}:{region.line}" if region.file and region.line else ""
    return Text.assemble((clean(region.name), "bold"), f" ({clean(region.kind)}){where}")


def _region(change: RegionChange, view: View) -> Iterator[Text]:
    yield Text.assemble("  ", _name(change.region, view))
    if change.became_incomplete:
        yield Text("    the graph is no longer complete", "red")
    if change.became_complete:
        yield Text("    the graph is now complete", "green")
    yield from map(_change, change.changes)


def _change(one: Change) -> Text:
    return Text(
        f"    {clean(one.label) + ':':<25}{figures(one)}", "red" if one.worse else "green" if one.new < one.old else ""
    )


def figures(change: Change) -> str:
    unit = f" {change.unit}" if change.unit else ""
    percent = f" ({change.ratio - 1:+.0%})" if change.ratio is not None and change.unit else ""
    word = (" slower" if change.unit else " worse") if change.worse else ""
    return f"{change.old:,.4g} -> {change.new:,.4g}{unit}{percent}{word}"


def total(comparison: Comparison) -> Text:
    worse = sum(c.worse for c in comparison.changed)
    text = Text()
    text.append(f"{count(len(comparison.appeared), 'finding')} appeared", "red" if comparison.appeared else "")
    text.append(f", {len(comparison.disappeared):,} disappeared", "green" if comparison.disappeared else "")
    text.append(f", {comparison.unchanged:,} unchanged; ", "default")
    text.append(f"{count(worse, 'region')} got worse" if worse else "no region got worse", "red" if worse else "")
    if comparison.kernels is not None:
        graphs = sum(graph.worse for graph in comparison.kernels.graphs)
        kernels = f"; the kernels of {count(graphs, 'graph')} got worse" if graphs else "; no kernels got worse"
        text.append(kernels, "red" if graphs else "default")
    text.append("; the step got slower." if comparison.slower_step else ".", "red" if comparison.slower_step else "default")
    return text
