"""On which line of a TOML text each key stands; ``tomllib`` keeps no positions. Key function: key_lines."""

from __future__ import annotations

import tomllib
from typing import Any

Path = tuple[str, ...]


def key_lines(text: str) -> dict[Path, int]:
    """The 1-based line of every table and key of ``text``, which must be valid TOML.

    Every TOML expression (a header, or a key with its value) is a valid document by itself, so the text is cut
    into expressions by parsing: lines are added until the piece parses. Only multi-line values take more than
    one attempt.
    """
    lines: dict[Path, int] = {}
    table: Path = ()
    piece, start = "", 0
    for number, line in enumerate(text.split("\n"), start=1):
        if not piece:
            start = number
        piece += line + "\n"
        try:
            content = tomllib.loads(piece)
        except tomllib.TOMLDecodeError:
            continue
        if piece.lstrip().startswith("["):
            table = _only_path(content)
            lines.setdefault(table, start)
        else:
            _note(lines, table, content, start)
        piece = ""
    return lines


def _only_path(content: Any) -> Path:
    """The dotted name of a header, from the nested single-key document it parses to."""
    path: list[str] = []
    while content:
        if isinstance(content, list):
            content = content[0]
            continue
        ((key, content),) = content.items()
        path.append(key)
    return tuple(path)


def _note(lines: dict[Path, int], above: Path, content: dict[str, Any], line: int) -> None:
    for key, value in content.items():
        path = (*above, key)
        lines.setdefault(path, line)
        if isinstance(value, dict):
            _note(lines, path, value, line)
