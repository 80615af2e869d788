"""The page of a comparison of two runs: steps, regions, findings, kernels. Key function: text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from html import escape

from lsp_server.comparison import MEASURES, STEP_MEASURES, Comparison, RegionChange
from lsp_server.formats import compared_kernels
from lsp_server.formats.compared import total
from lsp_server.formats.html import shell, step_bars
from lsp_server.formats.html.findings import findings_table
from lsp_server.formats.html.source import Sheets
from lsp_server.formats.html.table import table
from lsp_server.formats.view import View, clean, count
from lsp_server.kernel_comparison import GraphChange, KernelComparison
from lsp_server.measures import Change, Measure
from magpy_core.findings import RegionSummary, Report, Severity, StepReport

_SHOWN: tuple[Measure[RegionSummary], ...] = (
    Measure("graphs", lambda r: r.graphs),
    Measure("captures", lambda r: r.captures),
    *MEASURES,
    Measure("speedup", lambda r: r.speedup, unit="x"),
)
_SHOWN_OF_STEP: tuple[Measure[StepReport], ...] = (
    *STEP_MEASURES,
    Measure("speedup", lambda s: s.speedup, unit="x"),
)
_SAME = "<span class='soft'>as before</span>"
_STYLES = {"red": "error", "green": "good", "dim": "soft"}  # of the terminal, on the page


def text(comparison: Comparison, old: tuple[str, Report], new: tuple[str, Report], view: View, fail_on: Severity) -> str:
    """``old`` and ``new``: the reports with their names, usually of their files. ``fail_on``: the severity from which on a
    finding that appeared makes it worse."""
    reports = (old[1], new[1])
    sheets = Sheets(Report(""), view)  # the files may have changed since the runs: no line is shown
    chapters = {
        "step": _step(comparison, *reports),
        "regions": _regions(comparison, sheets),
        "findings": _findings(comparison, sheets, view),
        "kernels": "" if comparison.kernels is None else _kernels(comparison.kernels),
    }
    shown = {name: chapter for name, chapter in chapters.items() if chapter}
    head = shell.verdict(not comparison.worse(fail_on), total(comparison).plain, "")
    head += f"<p class='soft'>Before: {_run(*old)}<br>Now: {_run(*new)}</p>{shell.navigation(shown)}"
    body = [f"<h2 id='{name}'>{name.capitalize()}</h2>{chapter}" for name, chapter in shown.items()]
    return shell.document("comparison of two runs", head, body)


def _run(name: str, report: Report) -> str:
    """``main.json: train.py, 60 steps, 11.1 s``."""
    facts = [clean(report.entrypoint)] if report.entrypoint else []
    facts += [count(report.steps, "step")] if report.steps else []
    facts += [f"{report.timings['total']:,.1f} s"] if "total" in report.timings else []
    return f"<b>{escape(clean(name))}</b> {escape(', '.join(facts))}"


def _step(comparison: Comparison, old: Report, new: Report) -> str:
    if old.step is None or new.step is None:
        return ""
    found = {change.label: change for change in comparison.step}
    rows = [row for one in _SHOWN_OF_STEP if (row := _measured(one, old.step, new.step, found))]
    if not rows:
        return "<p class='soft'>No step was measured in both runs.</p>"
    bars = step_bars.picture({"before": old.step, "now": new.step})
    return bars + table(_head("a training step", "before", "now", "change"), rows)


def _measured(one: Measure[StepReport], old: StepReport, new: StepReport, found: Mapping[str, Change]) -> str:
    before, now = one.value(old), one.value(new)
    if before is None and now is None:
        return ""
    change = found.get(one.label)
    style = _style(change)
    shown = (
        _within(before, now) if change is None else f"{_percent(change.old, change.new)}{', slower' if change.worse else ''}"
    )
    cells = "".join(f"<td class='number'>{_figure(value, one)}</td>" for value in (before, now))
    return f"<tr><td>{_title(one)}</td>{cells}<td class='number {style}'>{shown}</td></tr>"


def _within(before: float | None, now: float | None) -> str:
    """What is said of two figures without a judged difference."""
    if before is None or now is None:
        return "<span class='soft'>measured once only</span>"
    return _SAME if before == now else f"<span class='soft'>{_percent(before, now)}</span>"


def _percent(before: float, now: float) -> str:
    return f"{now / before - 1:+.0%}" if before > 0 else ""


def _regions(comparison: Comparison, sheets: Sheets) -> str:
    changed = {id(change.region): change for change in comparison.changed}
    alone = [*((r, "new") for r in comparison.new_regions), *((r, "removed") for r in comparison.removed_regions)]
    every = [*(region for pair in comparison.pairs for region in pair), *(region for region, _ in alone)]
    measures = [one for one in _SHOWN if any(map(one.value, every))]
    rows = [_region(old, new, changed.get(id(new)), measures, sheets) for old, new in comparison.pairs]
    rows += [_alone(region, word, measures, sheets) for region, word in alone]
    if not rows:
        return ""
    note = (
        "<p class='soft'>Where two figures differ, the one before is above the one now. In red: worse; in green: less than "
        "before; otherwise within the noise, or not judged.</p>"
    )
    return note + table(_head("region", "graph", *(_title(one) for one in measures)), rows)


def _title(one: Measure[RegionSummary] | Measure[StepReport]) -> str:
    return f"{one.label} {one.unit}" if one.unit not in ("", "x") else one.label


def _region(
    old: RegionSummary,
    new: RegionSummary,
    change: RegionChange | None,
    measures: Sequence[Measure[RegionSummary]],
    sheets: Sheets,
) -> str:
    found = {one.label: one for one in change.changes} if change is not None else {}
    states = [_state(region) for region in (old, new)]
    graph = _both(*states)
    style = "" if change is None else "error" if change.became_incomplete else "good" if change.became_complete else ""
    cells = "".join(_pair(one, old, new, found.get(one.label)) for one in measures)
    return f"<tr>{_name(new, '', sheets)}<td class='number {style}'>{graph}</td>{cells}</tr>"


def _pair(one: Measure[RegionSummary], old: RegionSummary, new: RegionSummary, change: Change | None) -> str:
    before, now = (_figure(one.value(region), one) for region in (old, new))
    return f"<td class='number {_style(change)}'>{_both(before, now)}</td>"


def _both(before: str, now: str) -> str:
    return now if before == now else f"<span class='soft'>{before}</span><br>{now}"


def _alone(region: RegionSummary, word: str, measures: Sequence[Measure[RegionSummary]], sheets: Sheets) -> str:
    cells = "".join(f"<td class='number'>{_figure(one.value(region), one)}</td>" for one in measures)
    return f"<tr>{_name(region, word, sheets)}<td class='number'>{_state(region)}</td>{cells}</tr>"


def _name(region: RegionSummary, word: str, sheets: Sheets) -> str:
    where = f"<br>{sheets.place(region.file, region.line)}" if region.file else ""
    badge = f" <span class='badge'>{word}</span>" if word else ""
    name = escape(clean(region.name)).replace(".", ".<wbr>")
    return f"<td><b>{name}</b>{badge}{where}</td>"


def _state(region: RegionSummary) -> str:
    return "complete" if region.complete else "incomplete" if region.captures else "none"


def _figure(value: float | None, one: Measure[RegionSummary] | Measure[StepReport]) -> str:
    if value is None:
        return "-"
    return f"{value:.2f}x" if one.unit == "x" else f"{value:,.4g}"


def _style(change: Change | None) -> str:
    if change is None:
        return ""
    return "error" if change.worse else "good" if change.new < change.old else ""


def _findings(comparison: Comparison, sheets: Sheets, view: View) -> str:
    parts = []
    for title, found in (("Appeared", comparison.appeared), ("Disappeared", comparison.disappeared)):
        shown = findings_table(found, sheets, view, title.lower()) if found else "<p class='soft'>None.</p>"
        parts.append(f"<h3>{title} <span class='soft'>{len(found):,}</span></h3>{shown}")
    return f"{''.join(parts)}<p class='soft'>{count(comparison.unchanged, 'finding')} in both.</p>"


def _kernels(kernels: KernelComparison) -> str:
    graphs = "".join(map(_graph, kernels.graphs)) or "<p class='soft'>No difference.</p>"
    return f"<p>{escape(compared_kernels.title(kernels))}</p>{graphs}"


def _graph(graph: GraphChange) -> str:
    return f"<h3>{escape(clean(graph.region))}, {escape(graph.graph)}</h3><ul>{''.join(_items(graph))}</ul>"


def _items(graph: GraphChange) -> Iterator[str]:
    """A line for each; what belongs to an entry is below it."""
    for line, style in compared_kernels.of_graph(graph):
        inner = " class='inner'" if line.startswith("  ") else ""
        yield f"<li{inner}><span class='{_STYLES.get(style, '')}'>{escape(line.strip())}</span></li>"


def _head(first: str, *others: str) -> str:
    return f"<th>{first}</th>" + "".join(f"<th class='number'>{name}</th>" for name in others)
