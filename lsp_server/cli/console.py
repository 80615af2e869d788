"""Consoles for text and tables: color and width. Key functions: console, show."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import IO

from rich.console import Console, RenderableType
from rich.text import Text

# Output to a file has no width to fit, but tables should be readable in a log.
PLAIN_WIDTH = 120


def console(stream: IO[str], color: str) -> Console:
    """``color``: auto (a terminal, and NO_COLOR is not set), always or never."""
    known_width = Console(file=stream).is_terminal or "COLUMNS" in os.environ
    width = None if known_width else PLAIN_WIDTH
    if color == "never":
        return Console(file=stream, width=width, color_system=None, highlight=False)
    if color == "always":
        return Console(
            file=stream, width=width, force_terminal=True, color_system="standard", no_color=False, highlight=False
        )
    return Console(file=stream, width=width, highlight=False)


def show(to: Console, lines: Iterable[Text]) -> None:
    """Prints each line without wrapping, so that file:line:col stays clickable and greppable."""
    for line in lines:
        to.print(line, soft_wrap=True)


def show_table(to: Console, table: RenderableType) -> None:
    to.print(table)
