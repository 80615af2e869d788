"""Where each key is in a TOML text; ``tomllib`` has no positions. Key functions: key_lines, without_keys."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from typing import Any

Path = tuple[str, ...]


def key_lines(text: str) -> dict[Path, int]:
    """The 1-based line of every table and key of ``text``, which must be valid TOML.

    The path of a table in an array of tables contains its index: ``("entrypoints", "1", "name")``.
    """
    lines: dict[Path, int] = {}
    for table, content, start, _ in _expressions(text):
        if content is None:
            if table[-1:] == ("0",):
                lines.setdefault(table[:-1], start)
            lines.setdefault(table, start)
        else:
            _add_lines(lines, table, content, start)
    return lines


def without_keys(text: str, *dropped: Path) -> str:
    """``text`` without these keys and tables, and without the tables below them. Comments stay.

    A key beside others in an inline table stays, too.
    """
    lines = text.split("\n")
    for table, content, start, end in reversed(list(_expressions(text))):
        path = table if content is None else (*table, *_key_path(content))
        if content != {} and any(path[: len(key)] == key for key in dropped):
            del lines[start - 1 : end]
    return "\n".join(lines)


def _expressions(text: str) -> Iterator[tuple[Path, dict[str, Any] | None, int, int]]:
    """Each TOML expression: its table, its content (None: it is the table's header), its first and its last line.

    Every expression (a header, or a key with its value) is a valid document by itself. The text is split into
    expressions by adding lines until they parse; only multi-line values take more than one attempt.
    """
    arrays: dict[Path, int] = {}  # how many tables each array has so far
    table: Path = ()
    piece, start = "", 0
    for number, line in enumerate(text.split("\n"), start=1):
        if not piece:
            start = number
        piece += line + "\n"
        try:
            content = tomllib.loads(piece)
        except (tomllib.TOMLDecodeError, RecursionError):
            continue
        if piece.lstrip().startswith("[["):
            array = _in_arrays(_only_path(content), arrays, inner=True)
            arrays[array] = arrays.get(array, 0) + 1
            table = (*array, str(arrays[array] - 1))
            yield table, None, start, number
        elif piece.lstrip().startswith("["):
            table = _in_arrays(_only_path(content), arrays)
            yield table, None, start, number
        else:
            yield table, content, start, number
        piece = ""


def _in_arrays(name: Path, arrays: dict[Path, int], *, inner: bool = False) -> Path:
    """``name`` with the index of the last table after each array in it (``inner``: not after the last part)."""
    path: Path = ()
    for i, part in enumerate(name):
        path = (*path, part)
        if path in arrays and (not inner or i + 1 < len(name)):
            path = (*path, str(arrays[path] - 1))
    return path


def _only_path(content: Any) -> Path:
    """The dotted name of a header, from the nested single-key document that it parses to."""
    path: list[str] = []
    while content:
        if isinstance(content, list):
            content = content[0]
            continue
        ((key, content),) = content.items()
        path.append(key)
    return tuple(path)


def _key_path(content: dict[str, Any]) -> Path:
    """The dotted name of a key, from the document that it and its value parse to."""
    path: list[str] = []
    value: Any = content
    while isinstance(value, dict) and len(value) == 1:
        ((key, value),) = value.items()
        path.append(key)
    return tuple(path)


def _add_lines(lines: dict[Path, int], above: Path, content: dict[str, Any], line: int) -> None:
    for key, value in content.items():
        path = (*above, key)
        lines.setdefault(path, line)
        if isinstance(value, dict):
            _add_lines(lines, path, value, line)
