"""How a run is going, as a panel of at most eight lines. Key function: panel_lines."""

from __future__ import annotations

import io

from rich.bar import Bar as Blocks
from rich.console import Console, Group
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from lsp_server.formats.live import Bar, LiveText, fewer

HEIGHT = 8
_WIDEST = 80
_INSIDE = HEIGHT - 2


def panel_lines(text: LiveText, width: int, color: str = "auto") -> list[str]:
    """``width``: of the terminal. ``color``: as for a console."""
    # The last column stays free: some terminals go to the next line when it is written.
    out = Console(
        file=io.StringIO(),
        force_terminal=True,
        width=min(width - 1, _WIDEST),
        color_system=None if color == "never" else "standard",
        no_color=False if color == "always" else None,
        highlight=False,
        legacy_windows=False,
    )
    lines = [Text(line, "bold" if line is text.speeds else "", no_wrap=True, overflow="ellipsis") for line in text.lines]
    room = _INSIDE - len(lines)
    inside = Group(*lines, *([_bars(fewer(text.bars, room))] if text.bars and room > 0 else []))
    title = Text(f"MagPy: {text.head}" if text.head else "MagPy", no_wrap=True, overflow="ellipsis")
    out.print(Panel(inside, title=title, title_align="left", border_style="cyan"))
    assert isinstance(out.file, io.StringIO)
    return out.file.getvalue().rstrip("\n").split("\n")


def _bars(bars: tuple[Bar, ...]) -> Table:
    shown = Table.grid(expand=True, padding=(0, 1))
    shown.add_column(ratio=2, no_wrap=True, overflow="ellipsis")
    shown.add_column(ratio=3)
    shown.add_column(justify="left", no_wrap=True)
    for bar in bars:
        shown.add_row(bar.name, Blocks(100, 0, min(bar.percent, 100), color="cyan"), bar.figures)
    return shown
