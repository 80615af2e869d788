"""How statements that have become a function of their own leave the loop or the function that they stood in.

`continue` becomes ``return True``, `break` becomes ``return False`` and ``return value`` becomes ``return (value,)``; at
their end, the function returns None. Key types: Exit; key functions: exits, as_returns.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from enum import Enum


class Exit(Enum):
    CONTINUE = "continue"
    BREAK = "break"
    RETURN = "return"


class _Rewriter(ast.NodeTransformer):
    """Replaces the exits of statements by returns."""

    def __init__(self) -> None:
        self.found: set[Exit] = set()
        self._loops = 0

    def _loop(self, node: ast.For | ast.AsyncFor | ast.While) -> ast.AST:
        self._loops += 1
        node.body = [self.visit(one) for one in node.body]
        self._loops -= 1
        node.orelse = [self.visit(one) for one in node.orelse]
        return node

    visit_For = visit_AsyncFor = visit_While = _loop

    def _scope(self, node: ast.AST) -> ast.AST:
        return node

    visit_FunctionDef = visit_AsyncFunctionDef = visit_ClassDef = visit_Lambda = _scope

    def _left(self, kind: Exit, node: ast.stmt, value: ast.expr) -> ast.stmt:
        self.found.add(kind)
        return ast.fix_missing_locations(ast.copy_location(ast.Return(ast.copy_location(value, node)), node))

    def visit_Continue(self, node: ast.Continue) -> ast.stmt:
        return node if self._loops else self._left(Exit.CONTINUE, node, ast.Constant(True))

    def visit_Break(self, node: ast.Break) -> ast.stmt:
        return node if self._loops else self._left(Exit.BREAK, node, ast.Constant(False))

    def visit_Return(self, node: ast.Return) -> ast.stmt:
        value = node.value or ast.copy_location(ast.Constant(None), node)
        return self._left(Exit.RETURN, node, ast.Tuple([value], ast.Load()))


def as_returns(statements: Iterable[ast.stmt]) -> tuple[list[ast.stmt], set[Exit]]:
    """``statements`` (changed in place) with returns in place of their exits, and which exits they have."""
    rewriter = _Rewriter()
    return [rewriter.visit(one) for one in statements], rewriter.found
