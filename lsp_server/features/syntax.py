"""Python syntax with positions that count code points. Key functions: parse, range_of, calls_at, enclosing_functions."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from functools import lru_cache

from magpy_core.findings import Position, Range

Function = ast.FunctionDef | ast.AsyncFunctionDef


@lru_cache(maxsize=32)
def parse(lines: tuple[str, ...]) -> ast.Module | None:
    """The tree of a text, or None if it is not valid Python. Form feeds and the like are not line ends."""
    try:
        return ast.parse("\n".join(lines))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _column(line: str, utf8: int) -> int:
    return len(line.encode("utf-8", "surrogatepass")[:utf8].decode("utf-8", "replace"))


def position(lines: Sequence[str], line: int, utf8: int) -> Position:
    """A position of ``ast`` (1-based line, UTF-8 column) as a Position."""
    text = lines[line - 1] if line <= len(lines) else ""
    return Position(line - 1, _column(text, utf8))


def range_of(node: ast.expr | ast.stmt, lines: Sequence[str]) -> Range:
    end_line, end_column = node.end_lineno or node.lineno, node.end_col_offset or node.col_offset
    return Range(position(lines, node.lineno, node.col_offset), position(lines, end_line, end_column))


def calls_at(tree: ast.AST, lines: Sequence[str], where: Range) -> Iterator[ast.Call]:
    """Calls whose range is exactly ``where``."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and node.lineno == where.start.line + 1 and range_of(node, lines) == where:
            yield node


def enclosing_functions(tree: ast.AST, line: int) -> list[Function]:
    """The functions that contain ``line`` (0-based), outermost first."""
    found = [
        node
        for node in ast.walk(tree)
        if isinstance(node, Function) and node.lineno <= line + 1 <= (node.end_lineno or node.lineno)
    ]
    return sorted(found, key=lambda node: node.lineno)


def argument_for(name: str, function: Function, call: ast.Call) -> ast.expr | None:
    """The expression that ``call`` passes for a parameter of ``function``; None if unknown or the default."""
    arguments = [a.arg for a in (*function.args.posonlyargs, *function.args.args)]
    if name not in arguments or any(isinstance(a, ast.Starred) for a in call.args):
        return None
    index = arguments.index(name) - (arguments[0] == "self")
    keyword = next((k.value for k in call.keywords if k.arg == name), None)
    return keyword or (call.args[index] if 0 <= index < len(call.args) else None)
