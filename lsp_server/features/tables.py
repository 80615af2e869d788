"""Diagnostics for ``[tool.magpy]`` while it is edited. Key function: table_diagnostics."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from lsprotocol import types

from lsp_server.config import ConfigError, Problem, parse
from lsp_server.features.positions import split_lines, to_units
from lsp_server.links import in_editor
from magpy_core.findings import lookup

FILE = "pyproject.toml"
_MENTIONED = re.compile(r"\btool\s*\.\s*magpy\b")
_UNKNOWN = ("is not a setting", "is not a budget", "is not a finding code", "is not a dotted name")


def is_table_file(path: str | None) -> bool:
    return path is not None and Path(path).name == FILE


def table_diagnostics(path: str, text: str, encoding: str) -> list[types.Diagnostic]:
    """Every mistake at its key or value. A file without our table has none, whether it is valid TOML or not."""
    if not _MENTIONED.search(text):
        return []
    try:
        parse(Path(path), text)
    except ConfigError as error:
        lines = split_lines(text)
        return [_diagnostic(problem, lines, encoding) for problem in error.problems]
    return []


def _diagnostic(problem: Problem, lines: Sequence[str], encoding: str) -> types.Diagnostic:
    code = lookup("MP910")
    number = min(problem.line - 1, len(lines) - 1)
    line = lines[number]
    start, end = _columns(line, problem)
    ends = [types.Position(number, to_units(line, column, encoding)) for column in (start, end)]
    return types.Diagnostic(
        range=types.Range(*ends),
        severity=types.DiagnosticSeverity.Error,
        code=code.code,
        code_description=types.CodeDescription(in_editor(code, None)),
        source="magpy",
        message=problem.sentence,
        data={"name": code.name, "hint": " ".join(code.hints[:1])},
    )


def _columns(line: str, problem: Problem) -> tuple[int, int]:
    """The columns of an unknown key, else of its value, if they are on the line; else of the line's text."""
    whole = len(line) - len(line.lstrip()), len(line.rstrip())
    last = re.escape(problem.key.rpartition(".")[2])
    key = re.search(rf"(?<![\w-])[\"']?{last}[\"']?(?![\w-])", line) if last else None
    if key is None:
        return whole
    value = re.match(r"\s*=\s*", line[key.end() :])
    if value is None or problem.message.startswith(_UNKNOWN):
        return key.span()
    begin = key.end() + value.end()
    return begin, max(begin + 1, _value_end(line, begin))


def _value_end(line: str, begin: int) -> int:
    """The end of a value on its line: of a string or a bracket, else the next comma, brace or comment."""
    depth, quote = 0, ""
    for column in range(begin, len(line)):
        ch = line[column]
        if quote:
            if ch == quote and line[column - 1] != "\\":
                quote = ""
        elif ch in "\"'":
            quote = ch
        elif ch in "[{":
            depth += 1
        elif ch in "]}" and depth:
            depth -= 1
        elif depth == 0 and ch in ",#}]":
            return begin + len(line[begin:column].rstrip())
    return len(line.rstrip())
