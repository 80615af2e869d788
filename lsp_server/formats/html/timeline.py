"""The calls of a run over time, as a Chrome trace and as SVG. Key functions: chrome_trace, picture."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from typing import Any

from lsp_server.formats.view import clean, shorten
from magpy_core.findings import Report
from magpy_core.findings.details import Call

HOW = {
    "recorded": "recorded under the monitor",
    "watched": "eager mode; compiled code would have been valid",
    "replayed": "compiled",
    "plain": "eager mode",
}
_WIDE, _LEFT, _ROW = 1100, 190, 26
_DRAWN = 4000


def chrome_trace(report: Report) -> dict[str, Any]:
    """Complete events in microseconds, one thread per region, for Perfetto and chrome://tracing."""
    calls = report.details.calls if report.details is not None else []
    names = {region.id: clean(region.name) for region in report.regions}
    threads = {region: number for number, region in enumerate(dict.fromkeys(c.region for c in calls), start=1)}
    events: list[dict[str, Any]] = [
        {"ph": "M", "pid": 1, "tid": 0, "name": "process_name", "args": {"name": f"magpy: {clean(report.entrypoint)}"}}
    ]
    for region, number in threads.items():
        events.append(
            {"ph": "M", "pid": 1, "tid": number, "name": "thread_name", "args": {"name": names.get(region, region)}}
        )
    for call in calls:
        events.append({
            "ph": "X", "pid": 1, "tid": threads[call.region], "cat": "region", "name": names.get(call.region, call.region),
            "ts": round(call.start * 1e6, 3), "dur": round(call.seconds * 1e6, 3), "args": {"how": HOW[call.how]},
        })  # fmt: skip
    return {"traceEvents": events, "displayTimeUnit": "ms"}


def picture(report: Report) -> str:
    """One row per region. Very short calls are drawn one pixel wide."""
    calls = (report.details.calls if report.details is not None else [])[:_DRAWN]
    if not calls:
        return "<p class='soft'>No calls were timed.</p>"
    names = {region.id: region.name for region in report.regions}
    rows = {region: number for number, region in enumerate(dict.fromkeys(c.region for c in calls))}
    begin, end = calls[0].start, max(c.start + c.seconds for c in calls)
    scale = (_WIDE - _LEFT - 10) / max(end - begin, 1e-9)
    height = len(rows) * _ROW + 24
    parts = [f"<svg width='{_WIDE}' height='{height}' viewBox='0 0 {_WIDE} {height}' role='img' aria-label='timeline'>"]
    for region, row in rows.items():
        name = escape(shorten(clean(names.get(region, region)), 26), quote=True)
        parts.append(f"<text x='10' y='{row * _ROW + 18}'>{name}</text>")
    parts += [bar(call, _LEFT + (call.start - begin) * scale, rows[call.region] * _ROW + 5.0, scale) for call in calls]
    bottom = len(rows) * _ROW + 16
    parts.append(f"<text class='small' x='{_LEFT}' y='{bottom}'>{begin:,.3f} s</text>")
    parts.append(f"<text class='small' x='{_WIDE - 10}' y='{bottom}' text-anchor='end'>{end:,.3f} s</text>")
    return f"<div class='scroll'>{''.join(parts)}</svg></div><p class='soft'>{legend(calls)}</p>"


def legend(calls: Iterable[Call]) -> str:
    seen = {call.how for call in calls}
    return " ".join(
        f"<span class='key'><svg width='26' height='10'><rect class='{how}' x='12' width='10' height='10'/></svg>"
        f"{words}</span>"
        for how, words in HOW.items()
        if how in seen
    )


def bar(call: Call, x: float, y: float, scale: float) -> str:
    """``scale``: units of the picture per second."""
    title = f"{call.seconds * 1e3:,.3f} ms, {HOW[call.how]}"
    return (
        f"<rect class='{call.how}' x='{x:.1f}' y='{y:g}' width='{max(call.seconds * scale, 1.0):.1f}' height='16'>"
        f"<title>{title}</title></rect>"
    )
