"""Marks: expressions that do nothing in the program, but tell an object of ours when they are reached.

`finished` puts the objects in the place of the marks' names. Key functions: mark, passed.
"""

from __future__ import annotations

import ast


def mark(name: str, statement: ast.stmt) -> ast.stmt:
    """A statement that stands before ``statement``: the object gets None."""
    made = ast.Expr(ast.BinOp(ast.Constant(name), ast.MatMult(), ast.Constant(None)))
    for node in ast.walk(made):
        if "lineno" in node._attributes:
            ast.copy_location(node, statement)
            node.end_lineno, node.end_col_offset = statement.lineno, statement.col_offset + 1  # type: ignore[attr-defined]
    return made


def passed(name: str, value: ast.expr) -> ast.expr:
    """``value``: the object gets it in a tuple, which it returns, because an operator can't give NotImplemented."""
    given = ast.BinOp(ast.Constant(name), ast.MatMult(), ast.Tuple([value], ast.Load()))
    made = ast.Subscript(given, ast.Constant(0), ast.Load())
    for node in (made, given, given.left, given.right, made.slice):
        ast.copy_location(node, value)
    return made
