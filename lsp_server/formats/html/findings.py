"""Findings as a table with a filter; facts are below it, closed. Key function: findings_table."""

from __future__ import annotations

from collections.abc import Sequence

from lsp_server.formats.html.source import Sheets, linked, marked_up
from lsp_server.formats.html.table import table
from lsp_server.formats.view import View, count, ranks
from magpy_core.findings import Finding, lookup


def findings_table(findings: Sequence[Finding], sheets: Sheets, view: View, identity: str = "all-findings") -> str:
    """What a person would act on; the facts are below it, closed. ``identity``: the table's id in the page."""
    if not findings:
        return "<p class='good'>No findings.</p>"
    shown = view.shown(findings)
    facts = [f for f in findings if f not in shown]
    head = "<th>severity</th><th>code</th><th>where</th><th>what</th>"
    parts = [f"<input class='filter' data-rows='{identity}' placeholder='Filter' aria-label='Filter findings'>"]
    if shown:
        parts.append(table(head, [_row(f, sheets, view) for f in sorted(shown, key=lambda f: f.severity.rank)]))
    else:
        parts.insert(0, "<p class='good'>Nothing to act on.</p>")
    if facts:
        rows = [_row(f, sheets, view) for f in sorted(facts, key=lambda f: f.severity.rank)]
        what = f"{count(len(facts), 'fact')} that need{'s' if len(facts) == 1 else ''} no action"
        parts.append(f"<details class='facts'><summary>{what}</summary>{table(head, rows)}</details>")
    return f"<div id='{identity}'>{''.join(parts)}</div>"


def _row(f: Finding, sheets: Sheets, view: View) -> str:
    place = sheets.place(f.location.file, f.location.range.start.line + 1)
    severity = f"<td class='{f.severity.value}'>{f.severity.value}</td>"
    code = f"<td class='code'>{linked(lookup(f.code), view.docs_url)}</td>"
    times = f" <span class='soft'>({f.count:,} times)</span>" if f.count > 1 else ""
    times += f" <span class='soft'>(only {ranks(f)})</span>" if f.ranks else ""
    return f"<tr>{severity}{code}<td>{place}</td><td>{marked_up(f.message)}{times}</td></tr>"
