"""The page of a run: verdict, step, regions, source, kernels, recompiles, captures, timeline. Key function: text.

All text from the program is escaped.
"""

from __future__ import annotations

import base64
import json
from html import escape

from lsp_server.formats.html import capture_timeline, graph_listing, kernels, shell, step, timeline, verified, why_not
from lsp_server.formats.html.findings import findings_table
from lsp_server.formats.html.source import Sheets
from lsp_server.formats.html.table import table
from lsp_server.formats.regions import totals
from lsp_server.formats.view import View, clean, count
from magpy_core.findings import RegionSummary, Report
from magpy_core.findings.details import CaptureDetail, GuardDetail

_GUARD_ROWS = 2000
_COLUMNS = (
    "calls",
    "captures",
    "graph breaks",
    "guards",
    "side effects",
    "host reads",
    "eager ms",
    "compiled ms",
    "speedup",
)


def text(report: Report, view: View) -> str:
    sheets = Sheets(report, view)
    recompiles, of_step = capture_timeline.chapter(report, sheets), step.chapter(report)
    of_comparison, uncompiled = verified.chapter(report), why_not.chapter(report, sheets)
    body = [
        of_step,
        of_comparison,
        f"<h2 id='regions'>Regions</h2>{_regions(report, sheets)}",
        uncompiled,
        f"<h2 id='findings'>Findings</h2>{findings_table(report.findings, sheets, view)}",
        f"<h2 id='source'>Source</h2>{sheets.html()}",
        kernels.chapter(report, sheets),
        recompiles,
        *_captures(report, sheets),
        _timeline(report),
    ]
    links = ["step"] if of_step else []
    links += ["verified"] if of_comparison else []
    links += ["regions"] + (["why-not"] if uncompiled else [])
    links += ["findings", "source"] + (["kernels"] if report.kernels is not None else [])
    links += ["recompiles"] if recompiles else []
    links += ["captures", "timeline"] if report.details is not None else []
    return shell.document(report.entrypoint, f"{_verdict(report, view)}{shell.navigation(links)}", body)


def _steps(report: Report) -> str:
    return f"{'stopped after ' if report.stopped_after is not None else ''}{count(report.steps, 'step')}"


def _verdict(report: Report, view: View) -> str:
    failing = any(f.severity.rank <= view.fail_on.rank for f in report.findings)
    seconds = f", {report.timings['total']:,.1f} s" if "total" in report.timings else ""
    return shell.verdict(not failing, next(totals(report, view)).plain, f"{_steps(report)}{seconds}")


def _regions(report: Report, sheets: Sheets) -> str:
    if not report.regions:
        return "<p class='soft'>No region was monitored.</p>"
    head = "<th>region</th><th>graph</th>" + "".join(f"<th class='number'>{name}</th>" for name in _COLUMNS)
    return table(head, [_region(region, sheets) for region in report.regions])


def _region(region: RegionSummary, sheets: Sheets) -> str:
    where = f"<br>{sheets.place(region.file, region.line)}" if region.file else ""
    program = f" <span class='soft'>in {escape(clean(region.entrypoint))}</span>" if region.entrypoint else ""
    state, style = (
        ("complete", "good") if region.complete else ("none", "error") if not region.captures else ("incomplete", "warning")
    )
    speed = f"{region.shown_speedup:.2f}x" if region.shown_speedup is not None else "-"
    if region.speedup_low is not None and region.speedup_high is not None:
        speed += f"<br><span class='soft'>{region.speedup_low:.2f} to {region.speedup_high:.2f}</span>"
    counts = (region.calls, region.captures, region.graph_breaks, region.guards, region.side_effects, region.host_reads)
    cells = [f"{n:,}" for n in counts]
    cells += ["-" if ms is None else f"{ms:,.3f}" for ms in (region.eager_ms, region.compiled_ms)]
    numbers = "".join(f"<td class='number'>{cell}</td>" for cell in [*cells, speed])
    shown = escape(clean(region.name)).replace(".", ".<wbr>")
    name = f"<td><b>{shown}</b>{program}{where}</td>"
    return f"<tr>{name}<td class='{style}'>{state}</td>{numbers}</tr>"


def _captures(report: Report, sheets: Sheets) -> list[str]:
    if report.details is None:
        return []
    names = {region.id: region for region in report.regions}
    parts = ["<h2 id='captures'>Captures</h2>"]
    for detail in report.details.regions:
        region = names.get(detail.region)
        title = escape(clean(region.name if region is not None else detail.region))
        if region is not None and region.entrypoint:
            title += f" <span class='soft'>in {escape(clean(region.entrypoint))}</span>"
        if not detail.captures:
            parts.append(f"<h3>{title}</h3><p class='soft'>No capture; the findings of this region say why.</p>")
        for number, capture in enumerate(detail.captures):
            which = (
                "" if len(detail.captures) == 1 else f", capture {len(detail.captures) - number} of {len(detail.captures)}"
            )
            parts.append(f"<h3>{title}{which}</h3>{_capture(capture, sheets)}")
    return parts


def _capture(capture: CaptureDetail, sheets: Sheets) -> str:
    drawn = graph_listing.searchable(capture, sheets.anchor)
    operations = sum(node.kind != "placeholder" for node in capture.nodes) + capture.cut
    parts = [f"<details><summary>Operator graph: {count(operations, 'operation')}</summary>{drawn}</details>"]
    rows = [_guard(guard, sheets) for guard in capture.guards[:_GUARD_ROWS]]
    if rows:
        left = len(capture.guards) - len(rows)
        more = f"<p class='soft'>and {left:,} more</p>" if left else ""
        head = "<th>value</th><th>check</th><th>must be</th><th>read at</th>"
        parts.append(
            f"<details><summary>Guards: {len(capture.guards):,} values</summary>{table(head, rows)}{more}</details>"
        )
    codes = [("Guard code", capture.guard_code), ("Side effects code", capture.replay_code)]
    codes += [(f"Generated code, graph {i}", code) for i, code in enumerate(capture.generated_code)]
    parts += [
        f"<details><summary>{name}</summary><div class='scroll'><pre>{escape(clean(code, lines=True))}</pre></div></details>"
        for name, code in codes
        if code.strip()
    ]
    return "".join(parts)


def _guard(guard: GuardDetail, sheets: Sheets) -> str:
    place = sheets.place(guard.file, guard.line) if guard.file else ""
    cells = (
        f"<code>{escape(clean(guard.name))}</code>",
        escape(guard.check),
        f"<code>{escape(clean(guard.value))}</code>",
        place,
    )
    return "<tr>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>"


def _timeline(report: Report) -> str:
    if report.details is None:
        return ""
    data = base64.b64encode(json.dumps(timeline.chrome_trace(report)).encode()).decode()
    link = f"<a download='trace.json' href='data:application/json;base64,{data}'>trace.json</a>"
    opened = "<a href='https://ui.perfetto.dev'>Perfetto</a>"
    return f"<h2 id='timeline'>Timeline</h2>{timeline.picture(report)}<p>{link} opens in {opened} or chrome://tracing.</p>"
