"""A table of the page, which a narrow window shows as a block for each row. Key function: table."""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import count

_HEADING = re.compile(r"<th\b[^>]*>(.*?)</th>")
_CELL = re.compile(r"<td\b")


def table(head: str, rows: Iterable[str]) -> str:
    """Each cell has the heading of its column, which stands before the value in a block."""
    names = _HEADING.findall(head)
    body = "".join(_labelled(row, names) for row in rows)
    return f"<div class='scroll'><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"


def _labelled(row: str, names: list[str]) -> str:
    number = count()
    return _CELL.sub(lambda _: f"<td data-label='{names[next(number)]}'", row)
