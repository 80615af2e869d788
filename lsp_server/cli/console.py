"""Consoles for text and tables: when to colour, how wide. Key functions: console, show."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import IO

from rich.console import Console, RenderableType
from rich.text import Text

# Where output is not a terminal nothing has to fit, but tables should still be readable in a log.
PLAIN_WIDTH = 120


def console(stream: IO[str], color: str) -> Console:
    """``color``: auto (a terminal, and NO_COLOR is not set), always or never."""
    settled = Console(file=stream).is_terminal or "COLUMNS" in os.environ
    width = None if settled else PLAIN_WIDTH
    if color == "never":
        return Console(file=stream, width=width, color_system=None, highlight=False)
    if color == "always":
        return Console(
            file=stream, width=width, force_terminal=True, color_system="standard", no_color=False, highlight=False
        )
    return Console(file=stream, width=width, highlight=False)


def show(to: Console, lines: Iterable[Text]) -> None:
    """Prints each line as it is: never wrapped, so that file:line:col stays clickable and greppable."""
    for line in lines:
        to.print(line, soft_wrap=True)


def show_table(to: Console, table: RenderableType) -> None:
    to.print(table)
