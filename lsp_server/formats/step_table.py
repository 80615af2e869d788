"""The training step in a terminal: its line, and a table of its parts. Key function: blocks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich import box
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from lsp_server.formats import step_text
from lsp_server.formats.step_parts import rows, share_of
from lsp_server.formats.view import clean
from magpy_core.findings import Report, StepReport


def blocks(report: Report, programs: Sequence[tuple[str, Report]] = ()) -> Iterator[RenderableType]:
    """The line, which may wrap, and the table; for a report of several ``programs``, the line of each.

    Empty for reports without a step.
    """
    lines = [_line(own, f"{clean(name)}: ") for name, own in programs if own.step is not None]
    lines = lines if programs else [_line(report)] if report.step is not None else []
    yield from lines
    if lines:
        yield Text()
    if not programs and report.step is not None and report.step.parts:
        yield _table(report.step)


def _line(report: Report, program: str = "") -> Text:
    text = Text(program + step_text.line(report))
    text.stylize("bold", 0, len(program) + len("Step:"))
    if report.step is not None and report.step.shown_speedup is not None:
        text.highlight_regex(r"\d+\.\d\dx", "green" if report.step.verdict == "faster" else "red")
    return text


def _table(step: StepReport) -> Table:
    shown = Table(
        box=box.SIMPLE_HEAD,
        title=f"Parts of a step (share: of the {share_of(step)} step)",
        title_justify="left",
        pad_edge=False,
        padding=0,
    )
    shown.add_column("part", overflow="fold", min_width=12)
    # headings have two lines, so that the table fits in 80 columns
    passes = "forward +\nbackward"
    for name in ("share\n%", "eager\nms", passes, "compiled\nms", passes, "speedup"):
        shown.add_column(name, justify="right", no_wrap=True)
    for row in rows(step):
        *figures, speedup = row.cells
        style = "" if row.speedup is None else "green" if row.speedup >= 1 else "red"
        shown.add_row(Text(clean(row.name), "bold" if row.region else ""), *figures, Text(speedup, style))
    return shown
