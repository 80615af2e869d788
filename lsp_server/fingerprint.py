"""Fingerprints identify a finding even when lines move. Key functions: fingerprint, numbered.

A fingerprint is the hash of the code, the file's path below the project, the enclosing function and the text of the
line. Line numbers and messages (which contain values of the run) are not part of it. Findings that agree in all of this
share a fingerprint: formats that require unique ones add a number, and a baseline counts them.
"""

from __future__ import annotations

import ast
import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

from lsp_server.formats.view import relative
from lsp_server.sources import Sources
from magpy_core.findings import Finding

_LENGTH = 32


def identity(finding: Finding, base: Path, sources: Sources) -> tuple[str, str, str, str]:
    """The parts of a fingerprint: code, file below ``base``, function and text of the line."""
    file, number = finding.location.file, finding.location.range.start.line
    text = " ".join((sources.line(file, number) or "").split())
    function = enclosing(file, number, sources) or finding.location.function
    return (finding.code, relative(file, base), function, text)


def fingerprint(finding: Finding, base: Path, sources: Sources) -> str:
    """Hexadecimal digits. Paths are relative to the folder ``base``."""
    parts = identity(finding, base, sources)
    return hashlib.sha256("\0".join(parts).encode("utf-8", "replace")).hexdigest()[:_LENGTH]


def numbered(findings: Iterable[Finding], base: Path, sources: Sources) -> Iterator[tuple[Finding, str, int]]:
    """Each finding with its fingerprint and the number of earlier findings with the same one."""
    seen: Counter[str] = Counter()
    for finding in findings:
        print_ = fingerprint(finding, base, sources)
        yield finding, print_, seen[print_]
        seen[print_] += 1


def unique(findings: Iterable[Finding], base: Path, sources: Sources) -> Iterator[tuple[Finding, str]]:
    """Each finding with a unique fingerprint."""
    for finding, print_, number in numbered(findings, base, sources):
        yield finding, print_ if number == 0 else hashlib.sha256(f"{print_}:{number}".encode()).hexdigest()[:_LENGTH]


def enclosing(file: str, line: int, sources: Sources) -> str:
    """``Class.method`` around the 0-based ``line``; empty at module level and in files that are not Python."""
    name = ""
    for start, end, qualified in _definitions(file, sources):
        if start <= line <= end:
            name = qualified  # in order of appearance, so an inner one comes later
    return name


def _definitions(file: str, sources: Sources) -> list[tuple[int, int, str]]:
    text = sources.text(file)
    key = (file, hash(text))
    if key not in _PARSED:
        if len(_PARSED) > 1000:
            _PARSED.clear()
        _PARSED[key] = list(_walk(_parse(text), ""))
    return _PARSED[key]


_PARSED: dict[tuple[str, int], list[tuple[int, int, str]]] = {}


def _parse(text: str | None) -> ast.AST:
    try:
        return ast.parse(text or "")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ast.Module([], [])


def _walk(tree: ast.AST, prefix: str) -> Iterator[tuple[int, int, str]]:
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            qualified = f"{prefix}{node.name}"
            first = min([node.lineno, *(d.lineno for d in node.decorator_list)])
            yield first - 1, (node.end_lineno or node.lineno) - 1, qualified
            yield from _walk(node, f"{qualified}.")
        else:
            yield from _walk(node, prefix)
