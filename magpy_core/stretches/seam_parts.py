"""The parts of a seam's expression that stretches can compute: what a statement does besides what can't be captured.

In ``for row in self.net(x).tolist():``, where only `tolist` can't be, `self.net(x)` is a stretch. A part is replaced in its
place, so everything is evaluated in the same order. Key functions: parts_of, with_parts; key type: Span.
"""

from __future__ import annotations

import ast
import builtins
import copy
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

from magpy_core.stretches.names import own_nodes


class Span(NamedTuple):
    """Where an expression stands: lines count from 1, columns UTF-8 bytes or code points. ``is_test``: it can be captured,
    but not what is done because it is true."""

    line: int
    column: int
    end_line: int
    end_column: int
    is_test: bool = False


_FIELDS: dict[type[ast.stmt], str] = {
    ast.Assign: "value", ast.AnnAssign: "value", ast.AugAssign: "value", ast.Expr: "value", ast.Return: "value",
    ast.For: "iter", ast.If: "test", ast.While: "test",
}  # fmt: skip
_LATER = (ast.AugAssign, ast.While)  # what they evaluate first is their target, or evaluated again and again
_NO_VALUES = (ast.Starred, ast.Slice, ast.Tuple, ast.JoinedStr, ast.FormattedValue)
#: Functions that a statement may look up before its part runs.
CONVERSIONS = frozenset({"bool", "float", "int"})
_BUILTINS = frozenset(vars(builtins))


def span_of(expression: ast.expr) -> Span:
    return Span(expression.lineno, expression.col_offset, expression.end_lineno or 0, expression.end_col_offset or 0)


def field_of(statement: ast.stmt) -> str | None:
    """The name of the field with the expression that ``statement`` evaluates, before everything else in it."""
    name = _FIELDS.get(type(statement))
    return name if name is not None and getattr(statement, name) is not None else None


def parts_of(statement: ast.stmt, spans: Collection[Span]) -> list[ast.expr]:
    """The largest parts of its expression that call something, and contain none of ``spans``. None if all of it contains
    none: then something else in the statement can't be captured, and only what a loop iterates over is a part."""
    name = field_of(statement)
    if name is None:
        return []
    expression = getattr(statement, name)
    if isinstance(statement, ast.For) or any(_is_in(expression, span) for span in spans):
        return list(_around(expression, spans))
    return []


def _is_in(expression: ast.expr, span: Span) -> bool:
    return contains(expression, span._replace(is_test=False))


def _around(expression: ast.expr, spans: Collection[Span]) -> Iterator[ast.expr]:
    if _has_no_value(expression) or any(contains(expression, span) for span in spans):
        for one in _operands(expression):
            yield from _around(one, spans)
    elif _calls(expression) and not any(isinstance(node, ast.NamedExpr) for node in own_nodes([expression])):
        yield expression


def _has_no_value(expression: ast.expr) -> bool:
    """Whether no graph gives what it gives: texts, iterators; but it may give what is in it."""
    return isinstance(expression, _NO_VALUES) or (isinstance(expression, ast.Call) and _is_builtin(expression.func))


def _is_builtin(function: ast.expr) -> bool:
    return isinstance(function, ast.Name) and function.id in _BUILTINS


def contains(expression: ast.expr, span: Span) -> bool:
    """Whether ``expression`` can't be captured because of what is at ``span``."""
    own = span_of(expression)
    around = own[:2] <= span[:2] and span[2:4] <= own[2:4]
    return around and not (span.is_test and own[:4] == span[:4])


def _calls(expression: ast.expr) -> bool:
    """Whether it calls anything but Python's own functions."""
    return any(isinstance(node, ast.Call) and not _is_builtin(node.func) for node in own_nodes([expression]))


def _operands(node: ast.expr) -> Sequence[ast.expr]:
    """The expressions in ``node`` that are evaluated in its scope, in their order."""
    match node:
        case ast.Call():
            function = node.func.value if isinstance(node.func, ast.Attribute) else node.func
            return [function, *node.args, *(keyword.value for keyword in node.keywords)]
        case ast.Attribute() | ast.Starred() | ast.NamedExpr() | ast.FormattedValue():
            return [node.value]
        case ast.Subscript():
            return [node.value, node.slice]
        case ast.BinOp():
            return [node.left, node.right]
        case ast.UnaryOp():
            return [node.operand]
        case ast.Compare():
            return [node.left, *node.comparators]
        case ast.BoolOp() | ast.JoinedStr():
            return node.values
        case ast.IfExp():
            return [node.test, node.body, node.orelse]
        case ast.Tuple() | ast.List() | ast.Set():
            return node.elts
        case ast.Dict():
            return [*(key for key in node.keys if key is not None), *node.values]
        case ast.Slice():
            return [one for one in (node.lower, node.upper, node.step) if one is not None]
    return []


def is_evaluated_first(part: ast.expr, statement: ast.stmt, bound: Collection[str]) -> bool:
    """Whether ``statement`` evaluates ``part`` of its expression before anything else, and once. ``bound``: names that the
    statements before it bind."""
    name = field_of(statement)
    if name is None or isinstance(statement, _LATER):
        return False
    converts = CONVERSIONS if CONVERSIONS.isdisjoint(bound) else frozenset()
    node: ast.expr | None = getattr(statement, name)
    while node is not None and node is not part:
        node = _first_operand(node, converts)
    return node is part


def _first_operand(node: ast.expr, converts: Collection[str]) -> ast.expr | None:
    match node:
        case ast.Call(ast.Name(name), [argument, *_]) if name in converts:
            return argument
        case ast.Call(func=ast.Attribute()) | ast.Attribute() | ast.Subscript() | ast.BinOp() | ast.UnaryOp():
            return _operands(node)[0]
        case ast.Compare() | ast.BoolOp() | ast.IfExp() | ast.Tuple() | ast.List():
            return next(iter(_operands(node)), None)
    return None


def with_parts(statement: ast.stmt, made: Mapping[int, ast.expr]) -> ast.stmt:
    """``statement`` with other expressions in place of parts of its own. ``made``: by the part's ``id``."""
    name = field_of(statement)
    assert name is not None
    changed = copy.copy(statement)
    setattr(changed, name, _replaced(getattr(statement, name), made))
    return changed


def _replaced(node: ast.AST, made: Mapping[int, ast.expr]) -> ast.AST:
    if id(node) in made:
        return made[id(node)]
    changed = copy.copy(node)
    for name, value in ast.iter_fields(node):
        if isinstance(value, ast.AST):
            setattr(changed, name, _replaced(value, made))
        elif isinstance(value, list):
            setattr(changed, name, [_replaced(one, made) if isinstance(one, ast.AST) else one for one in value])
    return changed
