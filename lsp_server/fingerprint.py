"""What stays the same of a finding when lines move. Key functions: fingerprint, numbered.

A fingerprint is made of the code, the file's path below the project, the function around the line and the text of the
line. Neither line numbers nor messages (which hold values of the run) are part of it. Findings that agree in all of that
share a fingerprint: they are told apart by their number where a format wants unique ones, and counted in a baseline.
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
    """Code, file below ``base``, function and text of the line: what a fingerprint is made of."""
    file, number = finding.location.file, finding.location.range.start.line
    text = " ".join((sources.line(file, number) or "").split())
    function = enclosing(file, number, sources) or finding.location.function
    return (finding.code, relative(file, base), function, text)


def fingerprint(finding: Finding, base: Path, sources: Sources) -> str:
    """Hexadecimal digits. ``base`` is the folder that paths are taken relative to."""
    parts = identity(finding, base, sources)
    return hashlib.sha256("\0".join(parts).encode("utf-8", "replace")).hexdigest()[:_LENGTH]


def numbered(findings: Iterable[Finding], base: Path, sources: Sources) -> Iterator[tuple[Finding, str, int]]:
    """Each finding with its fingerprint and how many before it had the same one."""
    seen: Counter[str] = Counter()
    for finding in findings:
        print_ = fingerprint(finding, base, sources)
        yield finding, print_, seen[print_]
        seen[print_] += 1


def unique(findings: Iterable[Finding], base: Path, sources: Sources) -> Iterator[tuple[Finding, str]]:
    """Each finding with a fingerprint that no other one of them has."""
    for finding, print_, number in numbered(findings, base, sources):
        yield finding, print_ if number == 0 else hashlib.sha256(f"{print_}:{number}".encode()).hexdigest()[:_LENGTH]


def enclosing(file: str, line: int, sources: Sources) -> str:
    """``Class.method`` around the 0-based ``line``; empty at module level and where the file is no Python."""
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
