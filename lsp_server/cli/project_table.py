"""The text of ``[tool.magpy]`` that ``magpy-lsp init`` writes. Key functions: table_line, with_programs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from lsp_server.config import parse
from lsp_server.entrypoints import Entrypoint
from lsp_server.toml_lines import key_lines, without_keys

_TABLE = ("tool", "magpy")
_HEADER = "[tool.magpy]"


def table_line(text: str) -> int | None:
    """The line of ``[tool.magpy]`` in valid TOML; None if there is no such table."""
    lines = [line for path, line in key_lines(text).items() if path[:2] == _TABLE]
    return min(lines, default=None)


def with_programs(file: Path, text: str, programs: Sequence[Entrypoint], baseline: str | None) -> str:
    """``text`` with these programs as the entrypoints; everything else in it stays.

    Raises ConfigError if the result would not be valid, and ValueError if the old entrypoints can't be removed.
    """
    newline = "\r\n" if "\r\n" in text else "\n"
    text = text.replace("\r\n", "\n")
    keys = ["entrypoint", "entrypoints", *(["baseline"] if baseline is not None else [])]
    text = without_keys(text, *((*_TABLE, key) for key in keys))
    settings, tables = _settings(programs, baseline), _tables(programs)
    written = _with_settings(text, settings) if settings else text
    written = "\n\n".join(part for part in (written.rstrip("\n"), *tables) if part.strip("\n")) + "\n"
    loaded = parse(file, written).settings
    if len(loaded.entrypoints) + (loaded.entrypoint is not None) != len(programs):
        raise ValueError("the old entrypoints are still there")
    return written.replace("\n", newline)


def _settings(programs: Sequence[Entrypoint], baseline: str | None) -> list[str]:
    """The lines of ``[tool.magpy]`` itself."""
    lines = []
    if _is_plain(programs):
        command = programs[0].program or f"-m {programs[0].module}"
        lines.append(f"entrypoint = {_quoted(command)}  # what `magpy-lsp check` runs")
    if baseline is not None:
        lines.append(f"baseline = {_quoted(baseline)}  # known findings, which do not fail a check")
    return lines


def _tables(programs: Sequence[Entrypoint]) -> list[str]:
    """The tables of several entrypoints, or of one that needs more than a name."""
    if _is_plain(programs):
        return []
    tables = []
    for program in programs:
        keys = {"name": program.name, "program": program.program, "module": program.module, "cwd": program.cwd}
        lines = [f"{key} = {_quoted(value)}" for key, value in keys.items() if value is not None]
        tables.append("\n".join(["[[tool.magpy.entrypoints]]", *lines]))
    return tables


def _is_plain(programs: Sequence[Entrypoint]) -> bool:
    return len(programs) == 1 and programs[0].cwd is None


def _with_settings(text: str, settings: Sequence[str]) -> str:
    """``text`` with these lines after the header of the table, which is appended if there is none."""
    lines = text.split("\n")
    if (line := key_lines(text).get(_TABLE)) is not None and lines[line - 1].strip().startswith(_HEADER):
        return "\n".join([*lines[:line], *settings, *lines[line:]])
    return text.rstrip("\n") + ("\n\n" if text.strip() else "") + "\n".join([_HEADER, *settings]) + "\n"


def _quoted(text: str) -> str:
    """A TOML string: the escapes of JSON are valid in TOML, too."""
    return json.dumps(text, ensure_ascii=False)
