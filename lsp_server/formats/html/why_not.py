"""The chapter on what is not compiled, and why. Key function: chapter."""

from __future__ import annotations

import re
from html import escape

from lsp_server.formats import why_not
from lsp_server.formats.html.source import Sheets
from lsp_server.formats.html.table import table
from lsp_server.formats.view import clean
from magpy_core.findings import Report, WhyNot


def chapter(report: Report, sheets: Sheets) -> str:
    """Empty for a run in which everything is compiled."""
    found = why_not.by_weight(why_not.of_report(report))
    if not found:
        return ""
    head = "<th>region</th><th class='number'>share of a step</th><th>why</th><th>where</th><th>what to do</th>"
    return f"<h2 id='why-not'>{why_not.TITLE}</h2>{table(head, [_row(one, sheets) for one in found])}"


def _row(found: WhyNot, sheets: Sheets) -> str:
    name = escape(clean(why_not.name(found))).replace(".", ".<wbr>")
    share = "-" if found.share is None else f"{'≤ ' if found.is_limit else ''}{why_not.percent(found.share)}"
    cause = f"<br>{escape(found.code)}: {_marked(found.cause)}" if found.cause else ""
    value = f"<br><code>{escape(clean(found.value))}</code>" if found.value else ""
    place = sheets.place(found.file, found.line) if found.file else ""
    style = "error" if found.state == "eager" else "warning"
    cells = (
        f"<td><b>{name}</b></td>",
        f"<td class='number {style}'>{share}</td>",
        f"<td>{_marked(found.why)}{cause}{value}</td>",
        f"<td>{place}</td>",
        f"<td>{_marked(found.rewrite)}</td>",
    )
    return f"<tr>{''.join(cells)}</tr>"


def _marked(text: str) -> str:
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(clean(text)))
