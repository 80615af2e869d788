"""On which line of a TOML text each key stands; ``tomllib`` keeps no positions. Key function: key_lines."""

from __future__ import annotations

import tomllib
from typing import Any

Path = tuple[str, ...]


def key_lines(text: str) -> dict[Path, int]:
    """The 1-based line of every table and key of ``text``, which must be valid TOML.

    Every TOML expression (a header, or a key with its value) is a valid document by itself, so the text is cut
    into expressions by parsing: lines are added until the piece parses. Only multi-line values take more than
    one attempt. Of an array of tables each table has its number in the path: ``("entrypoints", "1", "name")``.
    """
    lines: dict[Path, int] = {}
    arrays: dict[Path, int] = {}  # how many tables each array has so far
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
        if piece.lstrip().startswith("[["):
            array = _in_arrays(_only_path(content), arrays, whole=False)
            lines.setdefault(array, start)
            arrays[array] = arrays.get(array, 0) + 1
            table = (*array, str(arrays[array] - 1))
            lines.setdefault(table, start)
        elif piece.lstrip().startswith("["):
            table = _in_arrays(_only_path(content), arrays)
            lines.setdefault(table, start)
        else:
            _note(lines, table, content, start)
        piece = ""
    return lines


def _in_arrays(name: Path, arrays: dict[Path, int], *, whole: bool = True) -> Path:
    """``name`` with the number of the last table after each array in it (``whole``: also when it is all of the name)."""
    path: Path = ()
    for i, part in enumerate(name):
        path = (*path, part)
        if path in arrays and (whole or i + 1 < len(name)):
            path = (*path, str(arrays[path] - 1))
    return path


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
