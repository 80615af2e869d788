"""The lines of a program by the time of their kernels on a target, as a table for a terminal. Key function: table."""

from __future__ import annotations

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from lsp_server.formats.view import View, clean, count, shorten
from magpy_core.findings import LineCost, TargetReport

_ROWS = 20
_FIGURES = 30  # cells that the columns of figures take, and what separates columns
_NOWHERE = "(no line of the program)"


def table(report: TargetReport, view: View) -> RenderableType:
    """The lines that take most; JSON has all of them."""
    total = sum(cost.us for cost in report.lines)
    title = Text.assemble(("Lines, hottest first", "bold"), "  a kernel's µs in a step, shared equally among its lines")
    shown = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0), show_edge=False)
    for name, width in (("µs", 9), ("share", 6), ("launches", 8)):
        shown.add_column(name, justify="right", no_wrap=True, width=width)
    left = max(view.width - _FIGURES, 40)
    places = [_place(cost, view) for cost in report.lines[:_ROWS]]
    of_places = min(max(map(len, places), default=0), left // 2)
    shown.add_column("line", overflow="ellipsis", no_wrap=True, width=of_places)
    shown.add_column("", no_wrap=True, width=left - of_places - 1)
    for cost, place in zip(report.lines[:_ROWS], places, strict=True):
        text = (view.sources.line(cost.file, cost.line - 1) or "").strip() if cost.file else ""
        source = Text(shorten(clean(text), left - of_places - 1), "dim")
        shown.add_row(f"{cost.us:,.1f}", f"{cost.us / total:.1%}", f"{cost.launches:,}", _cut(place, of_places), source)
    parts: list[RenderableType] = [Text(), title, shown]
    if (rest := report.lines[_ROWS:]) and total:
        share = sum(cost.us for cost in rest) / total
        parts.append(Text(f"and {count(len(rest), 'line')} more, {share:.1%} together: `--format json` has all", "dim"))
    return Group(*parts)


def _place(cost: LineCost, view: View) -> str:
    return f"{view.path(cost.file)}:{cost.line}" if cost.file else _NOWHERE


def _cut(place: str, width: int) -> str:
    """The end of a place says more than its beginning."""
    return place if len(place) <= width else "…" + place[len(place) - width + 1 :]
