"""The chapter on the training step: line, bars, table, one step as it ran, all steps over the run. Key function: chapter."""

from __future__ import annotations

import re
from html import escape

from lsp_server.formats import step_text
from lsp_server.formats.html import step_bars, step_flame, step_timeline
from lsp_server.formats.html.table import table
from lsp_server.formats.step_parts import HEAD, rows, share_of
from lsp_server.formats.view import clean
from magpy_core.findings import Report, StepReport


def chapter(report: Report) -> str:
    """Empty for a report without a step and without the times of calls."""
    step, flame = report.step, step_flame.picture(report)
    if step is None:
        return f"<h2 id='step'>Step</h2>{flame}" if flame else ""
    line = re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(step_text.line(report).removeprefix("Step: ")))
    line = line[0].upper() + line[1:]
    pictures = f"{step_bars.picture({'': step})}{_table(step)}{flame}{step_timeline.picture(step)}"
    return f"<h2 id='step'>Step</h2><p>{line}</p>{pictures}"


def _table(step: StepReport) -> str:
    if not step.parts:
        return ""
    head = "<th>part</th>" + "".join(f"<th class='number'>{name}</th>" for name in HEAD)
    lines = []
    for row in rows(step):
        name = escape(clean(row.name))
        cells = "".join(f"<td class='number'>{cell}</td>" for cell in row.cells)
        lines.append(f"<tr><td>{f'<b>{name}</b>' if row.region else name}</td>{cells}</tr>")
    return f"{table(head, lines)}<p class='soft'>Medians; share: of the {share_of(step)} step.</p>"
