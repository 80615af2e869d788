"""Replaces ``x.data`` with ``x.detach()``: the same memory, but autograd detects a write that would make a gradient wrong.

Offered if the value is only read in the same expression. Key function: detach_instead.
"""

from __future__ import annotations

import ast

from lsp_server.features.fixes.problem import Edit, Fix, Problem
from magpy_core.findings import Range

_OPERATORS = (ast.BinOp, ast.Compare, ast.UnaryOp)
# Methods that return a new tensor, not a view of its memory.
_READS = frozenset(
    {"abs", "all", "any", "argmax", "argmin", "clone", "exp", "item", "log", "max", "mean", "min", "norm", "prod", "sqrt",
     "std", "sum", "tolist", "topk", "var"}
)  # fmt: skip


def detach_instead(problem: Problem) -> Fix | None:
    """The fix for the first ``.data`` in the finding's range."""
    for node in ast.walk(problem.tree):
        if isinstance(node, ast.Attribute) and node.attr == "data" and isinstance(node.ctx, ast.Load):
            where = problem.range_of(node)
            if problem.range.start <= where.start and where.end <= problem.range.end and _only_read(problem, node):
                end = problem.range_of(node.value).end
                if problem.lines[where.end.line][: where.end.character].endswith(".data"):
                    start = type(end)(where.end.line, where.end.character - len(".data"))
                    return Fix(
                        "Replace `.data` with `.detach()`", (Edit(Range(start, where.end), ".detach()"),), rewrite=True
                    )
    return None


def _only_read(problem: Problem, node: ast.Attribute) -> bool:
    """Whether it is an operand, or a tensor that a method only reads: no reference remains that could write to it later."""
    if isinstance(node.value, ast.Name) and node.value.id in _modules(problem):
        return False
    parent = problem.parent(node)
    if isinstance(parent, ast.Attribute) and parent.attr in _READS:
        called = problem.parent(parent)
        return isinstance(called, ast.Call) and called.func is parent and not called.keywords
    return isinstance(parent, _OPERATORS) and not _augmented(problem, parent)


def _augmented(problem: Problem, node: ast.AST) -> bool:
    return isinstance(problem.parent(node), ast.AugAssign)


def _modules(problem: Problem) -> set[str]:
    """Names of imported modules: ``torch.utils.data`` is not a tensor."""
    imports = [n for n in ast.walk(problem.tree) if isinstance(n, (ast.Import, ast.ImportFrom))]
    return {(a.asname or a.name).split(".")[0] for n in imports for a in n.names}
