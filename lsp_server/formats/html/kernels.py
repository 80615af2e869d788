"""The chapter on kernels for a device: a roofline, the lines that take most, a table for each graph, Triton source.

Key function: chapter.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from html import escape
from itertools import groupby

from lsp_server.formats.html import roofline
from lsp_server.formats.html.source import Sheets
from lsp_server.formats.html.table import table
from lsp_server.formats.kernels import computes, kernel_text, ranges, size, traffic, us
from lsp_server.formats.view import clean, count
from magpy_core.findings import Kernel, Report, TargetGraph, TargetReport
from magpy_core.findings.kernels import of_a_call, total_launches, total_us

_HEAD = ("µs", "times", "moves", "MFLOP", "registers", "spills", "shared memory")
_HOTTEST = 20  # lines

_Numbered = Sequence[tuple[int, Kernel]]


def chapter(report: Report, sheets: Sheets) -> str:
    """Empty for a report without kernels."""
    target = report.kernels
    if target is None:
        return ""
    names = {region.id: region.name for region in report.regions}
    parts = [f"<h2 id='kernels'>Kernels</h2><p>{_heading(target)}</p>", roofline.picture(target), _lines(target, sheets)]
    for (region, graph), group in groupby(enumerate(target.kernels, 1), key=lambda item: (item[1].region, item[1].graph)):
        facts = [one for one in target.graphs if (one.region, one.graph) == (region, graph)]
        parts += _graph(names.get(region, region), graph, list(group), facts, sheets)
    for problem in target.problems:
        name = escape(clean(names.get(problem.region, problem.region)))
        parts.append(f"<p class='warning'>{name} is not listed: {escape(clean(problem.message))}</p>")
    return "".join(parts)


def _heading(target: TargetReport) -> str:
    launches = of_a_call(target.kernels)
    what = f"{count(total_launches(launches), 'kernel')}, at least {us(total_us(launches))} in all"
    device = f"{escape(clean(target.device))} ({escape(clean(target.target))})"
    return (
        f"One call of each region launches on {device}: {what}. <span class='soft'>Times are lower bounds by the device's "
        f"published figures, and never less than {target.launch_us:g} µs: nothing ran there.</span>"
    )


def _lines(target: TargetReport, sheets: Sheets) -> str:
    """The lines that take most of a step."""
    total = sum(cost.us for cost in target.lines)
    if not total:
        return ""
    head = "<th>line</th>" + "".join(f"<th class='number'>{name}</th>" for name in ("µs", "share", "launches"))
    rows = []
    for cost in target.lines[:_HOTTEST]:
        place = sheets.place(cost.file, cost.line) if cost.file else "<span class='soft'>no line of the program</span>"
        figures = (f"{cost.us:,.1f}", f"{cost.us / total:.1%}", f"{cost.launches:,}")
        rows.append(f"<tr><td>{place}</td>{_cells(figures)}</tr>")
    left = len(target.lines) - len(rows)
    more = f" {count(left, 'line')} more." if left else ""
    note = f"<p class='soft'>A kernel's time in a step, shared equally among its lines.{more}</p>"
    return f"<details><summary>Lines, hottest first</summary>{table(head, rows)}{note}</details>"


def _graph(region: str, graph: str, kernels: _Numbered, facts: Sequence[TargetGraph], sheets: Sheets) -> Iterator[str]:
    """The table of a graph, and its Triton source, closed."""
    of = [kernel for _, kernel in kernels]
    name = escape(clean(region))
    sums = f"{count(total_launches(of), 'kernel')}, at least {us(total_us(of))}"
    yield f"<h3>{name}, {escape(graph)} <span class='soft'>{sums}</span></h3>"
    yield from (f"<p class='soft'>{escape(traffic(of, fact).plain)}.</p>" for fact in facts)
    head = "<th>kernel</th><th>limit</th>" + "".join(f"<th class='number'>{each}</th>" for each in _HEAD)
    yield table(head, [_row(number, kernel, sheets) for number, kernel in kernels])
    own = [(number, kernel) for number, kernel in kernels if kernel.code is not None]
    if own:
        sources = "".join(_source(number, kernel) for number, kernel in own)
        yield f"<details><summary>Triton source: {count(len(own), 'kernel')}</summary>{sources}</details>"


def _row(number: int, kernel: Kernel, sheets: Sheets) -> str:
    code = kernel.code
    name = f"{number}. {_name(kernel)}"
    shown = f"<a href='#kernel-{number}'>{name}</a>" if code is not None else name
    what = f"<td><span class='mono'>{shown}</span><br>{escape(computes(kernel).plain)}<br>{_places(kernel, sheets)}</td>"
    figures = [f"{kernel.us:,.1f}", f"{kernel.launches:,}", size(kernel.work.bytes_moved)]
    figures.append(f"{kernel.work.flops / 1e6:,.2f}" if kernel.work.flops else "")
    figures += [f"{code.registers}", _size(code.spill_bytes), _size(code.shared_bytes)] if code is not None else ["", "", ""]
    return f"<tr>{what}<td class='code'>{escape(kernel.bound)}</td>{_cells(figures)}</tr>"


def _cells(figures: Iterable[str]) -> str:
    return "".join(f"<td class='number'>{figure}</td>" for figure in figures)


def _name(kernel: Kernel) -> str:
    """A name that may break at its underscores and dots."""
    return escape(clean(kernel.name)).replace("_", "_<wbr>").replace(".", ".<wbr>")


def _size(number: int) -> str:
    return size(number) if number else "-"


def _places(kernel: Kernel, sheets: Sheets) -> str:
    """The lines of each file, as a link to the first that the page shows."""
    found = []
    for file, group in groupby(kernel.lines, key=lambda at: at.file):
        lines = sorted({at.line for at in group})
        text = f"{escape(clean(os.path.basename(file)))}:{ranges(lines).replace(',', ',<wbr>')}"
        anchor = next((at for line in lines if (at := sheets.anchor(file, line))), None)
        found.append(f"<a class='mono' href='#{anchor}'>{text}</a>" if anchor else f"<span class='mono soft'>{text}</span>")
    return " ".join(found)


def _source(number: int, kernel: Kernel) -> str:
    assert kernel.code is not None
    text = escape(clean(kernel_text(kernel.code.triton), lines=True))
    title = f"<p class='mono' id='kernel-{number}'>{number}. {_name(kernel)}</p>"
    return f"{title}<div class='scroll'><pre>{text}</pre></div>"
