"""Tests of `if` and `while` statements that a stretch before them can compute.

A truth value or a number that a stretch returns would be a decision of its graph, so the frame finds it out:
`if not bool((x < 1).any())` becomes ``if not bool(receiver @ stretch)``.
Key functions: computed_part, with_value, may_rotate.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection

from magpy_core.stretches.names import own_nodes
from magpy_core.stretches.seam_parts import CONVERSIONS

#: What decides inside of a test, by the truth of a part of it, binds a name, or defines a function.
_DECIDES = (
    ast.BoolOp, ast.IfExp, ast.NamedExpr, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp, ast.Lambda,
)  # fmt: skip
_COMPUTES = (ast.Call, ast.BinOp, ast.Compare)
_CONTAINS = (ast.In, ast.NotIn)


def computed_part(test: ast.expr, bound: Collection[str] = ()) -> ast.expr | None:
    """The part of ``test`` that a stretch can compute without a branch; None: there is none. ``bound``: names that the
    statements before it bind, which run after the frame has looked up `bool` in `bool(x)`."""
    part = _part(test)
    if not CONVERSIONS.isdisjoint(bound):
        return None
    nodes = list(own_nodes([part]))
    if any(isinstance(node, _COMPUTES) for node in nodes) and not any(map(_decides, nodes)):
        return part
    return None


def with_value(test: ast.expr, value: ast.expr) -> ast.expr:
    """``test``, with ``value`` in place of the part that a stretch computes."""
    inner, around = _peeled(test)
    return value if inner is None else around(with_value(inner, value))


def _part(test: ast.expr) -> ast.expr:
    while (inner := _peeled(test)[0]) is not None:
        test = inner
    return test


def _peeled(test: ast.expr) -> tuple[ast.expr | None, Callable[[ast.expr], ast.expr]]:
    """What ``test`` makes a truth value or a number of, and how; None: it makes none of anything."""

    def like(made: ast.expr) -> ast.expr:
        return ast.copy_location(made, test)

    match test:
        case ast.UnaryOp(ast.Not(), operand):
            return operand, lambda value: like(ast.UnaryOp(ast.Not(), value))
        case ast.Call(ast.Name(name) as function, [argument], []) if name in CONVERSIONS and not isinstance(
            argument, ast.Starred
        ):
            return argument, lambda value: like(ast.Call(function, [value], []))
        case ast.Call(ast.Attribute(owner, "item") as method, [], []):
            return owner, lambda value: like(
                ast.Call(ast.copy_location(ast.Attribute(value, "item", ast.Load()), method), [], [])
            )
        case ast.Compare(left, [_], [ast.Constant() | ast.Name()]) if _peeled(left)[0] is not None:
            return left, lambda value: like(ast.Compare(value, test.ops, test.comparators))
    return None, lambda value: value


def _decides(node: ast.AST) -> bool:
    if isinstance(node, ast.Compare):
        return len(node.ops) > 1 or isinstance(node.ops[0], _CONTAINS)
    return isinstance(node, _DECIDES) or (isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not))


def may_rotate(loop: ast.While) -> bool:
    """Whether the test of ``loop`` can stand at the end of its body: nothing but the end leads to it."""
    return not loop.orelse and not any(_continues(statement) for statement in loop.body)


def _continues(statement: ast.stmt) -> bool:
    """Whether it leads on to the next turn of the loop that it stands in."""
    if isinstance(statement, ast.Continue):
        return True
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return False
    if isinstance(statement, ast.For | ast.AsyncFor | ast.While):
        return any(map(_continues, statement.orelse))
    return any(_continues(child) for child in _statements(statement))


def _statements(node: ast.AST) -> list[ast.stmt]:
    """Those of its blocks."""
    found = []
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.stmt):
            found.append(child)
        elif isinstance(child, ast.ExceptHandler | ast.match_case):
            found += child.body
    return found
