"""Lines and columns as LSP counts them. Key functions: split_lines, to_units, from_units, lsp_range.

Findings count Unicode code points; clients count UTF-16 code units unless another encoding was negotiated.
Lines end at LF, CRLF or CR only: ``str.splitlines`` also splits at form feeds and U+2028, which neither
Python's tokenizer nor LSP does.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from lsprotocol import types

from magpy_core.findings import Range

EOL = re.compile(r"\r\n|\n|\r")


def split_lines(text: str) -> list[str]:
    """The lines of ``text`` without their ends; never empty (an empty text is one empty line)."""
    return EOL.split(text)


def to_units(line: str, column: int, encoding: str) -> int:
    """Code units before the ``column``-th code point of ``line``."""
    head = line[: max(column, 0)]
    if encoding == types.PositionEncodingKind.Utf32.value:
        return len(head)
    if encoding == types.PositionEncodingKind.Utf8.value:
        return len(head.encode("utf-8", "surrogatepass"))
    return len(head) + sum(ch > "\uffff" for ch in head)


def from_units(line: str, units: int, encoding: str) -> int:
    """Code points that fit in the first ``units`` code units of ``line``; past the end means the end."""
    if encoding == types.PositionEncodingKind.Utf32.value:
        return min(max(units, 0), len(line))
    used = 0
    for index, ch in enumerate(line):
        if used >= units:
            return index
        used += to_units(ch, 1, encoding)
    return len(line)


def lsp_range(found: Range, first_line: int, lines: Sequence[str], encoding: str) -> types.Range:
    """The client's range of ``found`` where its first line now is ``first_line`` and ``lines`` are its lines' texts."""
    height = found.end.line - found.start.line
    return types.Range(
        types.Position(first_line, to_units(lines[0], found.start.character, encoding)),
        types.Position(first_line + height, to_units(lines[height], found.end.character, encoding)),
    )
