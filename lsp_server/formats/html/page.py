"""The whole page: verdict, step, regions, source, kernels, captures, timeline. Key function: text.

All text from the program is escaped, and a content security policy lets the page load nothing and run only its script.
"""

from __future__ import annotations

import base64
import hashlib
import json
from html import escape

from lsp_server.formats.html import capture_timeline, graph_listing, kernels, step, timeline
from lsp_server.formats.html.assets import SCRIPT, STYLE
from lsp_server.formats.html.source import Sheets, linked, marked_up
from lsp_server.formats.html.table import table
from lsp_server.formats.regions import totals
from lsp_server.formats.view import View, clean, count, ranks
from magpy_core import __version__
from magpy_core.findings import Finding, RegionSummary, Report, lookup
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
    "speed-up",
)


def text(report: Report, view: View) -> str:
    sheets = Sheets(report, view)
    recompiles = capture_timeline.chapter(report, sheets)
    title = f"MagPy: {escape(clean(report.entrypoint))}"
    policy = (
        f"default-src 'none'; style-src 'unsafe-inline'; img-src data:; script-src 'sha256-{_digest(SCRIPT)}'; "
        "base-uri 'none'; form-action 'none'"
    )
    return "".join(
        [
            "<!DOCTYPE html>\n<html lang='en'><head><meta charset='utf-8'>",
            f'<meta http-equiv="Content-Security-Policy" content="{policy}">',
            "<meta name='viewport' content='width=device-width, initial-scale=1'>",
            f"<title>{title}</title><style>{STYLE}</style></head><body>",
            f"<header><h1>{title}</h1>{_verdict(report, view)}{_navigation(report, bool(recompiles))}</header><main>",
            step.chapter(report),
            f"<h2 id='regions'>Regions</h2>{_regions(report, sheets)}",
            f"<h2 id='findings'>Findings</h2>{_findings(report, sheets, view)}",
            f"<h2 id='source'>Source</h2>{sheets.html()}",
            kernels.chapter(report, sheets),
            recompiles,
            *_captures(report, sheets),
            _timeline(report),
            f"<p class='soft'>MagPy {__version__}. This page contains source code and values of the program.</p>",
            f"</main><script>{SCRIPT}</script></body></html>\n",
        ]
    )


def _digest(script: str) -> str:
    return base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()


def _verdict(report: Report, view: View) -> str:
    failing = any(f.severity.rank <= view.fail_on.rank for f in report.findings)
    mark, style = ("✗", "error") if failing else ("✓", "good")
    summary = escape(next(totals(report, view)).plain)
    seconds = f", {report.timings['total']:,.1f} s" if "total" in report.timings else ""
    return f"<p><b class='{style}'>{mark} {summary}</b> <span class='soft'>{count(report.steps, 'step')}{seconds}</span></p>"


def _navigation(report: Report, recompiles: bool) -> str:
    links = ["step"] if report.step is not None else []
    links += ["regions", "findings", "source"] + (["kernels"] if report.kernels is not None else [])
    links += ["recompiles"] if recompiles else []
    links += ["captures", "timeline"] if report.details is not None else []
    shown = "".join(f"<a href='#{name}'>{name.capitalize()}</a>" for name in links)
    return f"<nav>{shown}<button id='theme' type='button'>Light / dark</button></nav>"


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
    speed = f"{region.speedup:.2f}x" if region.speedup is not None else "-"
    if region.speedup_low is not None and region.speedup_high is not None:
        speed += f"<br><span class='soft'>{region.speedup_low:.2f} to {region.speedup_high:.2f}</span>"
    counts = (region.calls, region.captures, region.graph_breaks, region.guards, region.side_effects, region.host_reads)
    cells = [f"{n:,}" for n in counts]
    cells += ["-" if ms is None else f"{ms:,.3f}" for ms in (region.eager_ms, region.compiled_ms)]
    numbers = "".join(f"<td class='number'>{cell}</td>" for cell in [*cells, speed])
    name = f"<td><b>{escape(clean(region.name))}</b>{program}{where}</td>"
    return f"<tr>{name}<td class='{style}'>{state}</td>{numbers}</tr>"


def _findings(report: Report, sheets: Sheets, view: View) -> str:
    """What a person would act on; the facts are below it, closed."""
    if not report.findings:
        return "<p class='good'>No findings.</p>"
    shown = view.shown(report.findings)
    facts = [f for f in report.findings if f not in shown]
    head = "<th>severity</th><th>code</th><th>where</th><th>what</th>"
    parts = ["<input class='filter' data-rows='all-findings' placeholder='Filter' aria-label='Filter findings'>"]
    if shown:
        parts.append(table(head, [_finding(f, sheets, view) for f in sorted(shown, key=lambda f: f.severity.rank)]))
    else:
        parts.insert(0, "<p class='good'>Nothing to act on.</p>")
    if facts:
        rows = [_finding(f, sheets, view) for f in sorted(facts, key=lambda f: f.severity.rank)]
        what = f"{count(len(facts), 'fact')} that need{'s' if len(facts) == 1 else ''} no action"
        parts.append(f"<details class='facts'><summary>{what}</summary>{table(head, rows)}</details>")
    return f"<div id='all-findings'>{''.join(parts)}</div>"


def _finding(f: Finding, sheets: Sheets, view: View) -> str:
    place = sheets.place(f.location.file, f.location.range.start.line + 1)
    severity = f"<td class='{f.severity.value}'>{f.severity.value}</td>"
    code = f"<td class='code'>{linked(lookup(f.code), view.docs_url)}</td>"
    times = f" <span class='soft'>({f.count:,} times)</span>" if f.count > 1 else ""
    times += f" <span class='soft'>(only {ranks(f)})</span>" if f.ranks else ""
    return f"<tr>{severity}{code}<td>{place}</td><td>{marked_up(f.message)}{times}</td></tr>"


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
    codes = [("Guard code", capture.guard_code), ("Replay code", capture.replay_code)]
    codes += [(f"Generated code, graph {i}", code) for i, code in enumerate(capture.generated_code)]
    parts += [
        f"<details><summary>{name}</summary><div class='scroll'><pre>{escape(clean(code))}</pre></div></details>"
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
