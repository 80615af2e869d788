"""Compares numbers and strings by value instead of by identity. Key function: compare_values.

Whether equal values are the same object depends on CPython's caches, so the result may change where the program relied on
that by accident: the title says what counts afterwards.
"""

from __future__ import annotations

import ast
import re

from lsp_server.features.fixes.problem import Edit, Fix, Problem
from magpy_core.findings import Position, Range

_OPERATOR = re.compile(r"\s+(is(?:\s+not)?)\s+")


def compare_values(problem: Problem) -> Fix | None:
    compare = problem.expression()
    if not isinstance(compare, ast.Compare) or len(compare.ops) != 1 or not isinstance(compare.ops[0], (ast.Is, ast.IsNot)):
        return None
    start, end = problem.range_of(compare.left).end, problem.range_of(compare.comparators[0]).start
    if start.line != end.line:
        return None
    between = _OPERATOR.fullmatch(problem.lines[start.line][start.character : end.character])
    if between is None:
        return None  # an operand is in parentheses
    new = "==" if isinstance(compare.ops[0], ast.Is) else "!="
    first, last = (Position(start.line, start.character + n) for n in between.span(1))
    return Fix(f"Compare with `{new}`: equal values, not the same object", (Edit(Range(first, last), new),), rewrite=True)
