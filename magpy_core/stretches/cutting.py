"""Cuts blocks of statements into stretches, with the statements that are none of them in between. Key type: Cutter."""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Sequence

from magpy_core.stretches.conditions import computed_part, may_rotate, with_value
from magpy_core.stretches.names import bound_names, own_nodes
from magpy_core.stretches.stretch import Scope, Stretch

_FIXED = (
    ast.Yield, ast.YieldFrom, ast.Await, ast.AsyncFor, ast.AsyncWith, ast.Global, ast.Nonlocal,
)  # fmt: skip
_BLOCKS = ("body", "orelse", "finalbody")
#: Names whose value depends on all variables of the frame that uses them, and the errors about unbound variables, whose
#: class depends on it.
OF_FRAMES = frozenset({"locals", "vars", "dir", "eval", "exec", "NameError", "UnboundLocalError"})
_OF_FUNCTIONS = OF_FRAMES | {"super", "__class__"}


class Cutter:
    """``is_seam``: statements that are to be in no stretch (but blocks in them may hold some); ``is_worth``: whether
    statements are worth a stretch; ``moves_test``: whether the stretch before a seam may compute its test. ``stretches``:
    those that were made, in the order of the source."""

    def __init__(
        self,
        scope: Scope,
        is_seam: Callable[[ast.stmt], bool],
        is_worth: Callable[[Sequence[ast.stmt]], bool],
        moves_test: Callable[[ast.expr], bool] = lambda test: False,
    ) -> None:
        self._scope, self._is_seam, self._is_worth, self._moves_test = scope, is_seam, is_worth, moves_test
        self.stretches: list[Stretch] = []

    def block(self, statements: Sequence[ast.stmt], *, ends_loop: bool) -> list[ast.stmt]:
        """The block with calls of stretches. ``ends_loop``: nothing follows it in the body of a loop."""
        made: list[ast.stmt] = []
        run: list[ast.stmt] = []
        for statement in statements:
            if self._is_in_stretch(statement):
                run.append(statement)
                continue
            before, test = self._run_and_test(run, statement.test) if isinstance(statement, ast.If) else (None, None)
            made += self._run(run, ends_loop=False) if before is None else before
            made.append(self._seam(statement, test, ends_loop=ends_loop and statement is statements[-1]))
            run = []
        return made + self._run(run, ends_loop=ends_loop)

    def _is_in_stretch(self, statement: ast.stmt) -> bool:
        return not self._is_seam(statement) and can_be_moved(statement, self._scope)

    def _run(self, statements: list[ast.stmt], *, ends_loop: bool) -> list[ast.stmt]:
        stretch = self._stretch(statements, ends_loop=ends_loop)
        if stretch is None or not stretch.can_stand:
            return statements
        self.stretches.append(stretch)
        return stretch.call()

    def _stretch(self, statements: list[ast.stmt], *, ends_loop: bool) -> Stretch | None:
        if not statements or not self._is_worth(statements):
            return None
        return Stretch.of(self._scope, statements, ends_loop=ends_loop)

    def _run_and_test(self, statements: list[ast.stmt], test: ast.expr) -> tuple[list[ast.stmt] | None, ast.expr | None]:
        """What stands in for ``statements``, and for the ``test`` after them, if their stretch computes it."""
        computed = computed_part(test, bound_names(statements))
        if self._scope.is_module or computed is None or not self._moves_test(test) or not self._can_move(computed):
            return None, None
        stretch = self._stretch(statements, ends_loop=False)
        with_test = stretch.with_test(computed) if stretch is not None else None
        if with_test is None:
            return None, None
        self.stretches.append(with_test)
        before, call = with_test.call_as_test()
        return before, with_value(test, call)

    def _can_move(self, test: ast.expr) -> bool:
        return can_be_moved(ast.copy_location(ast.Expr(test), test), self._scope)

    def _rotated(self, loop: ast.While) -> ast.stmt | None:
        """``loop`` with its test at the end of its body, in the body's last stretch; None: it can't be moved there."""
        last = len(loop.body)
        while last and self._is_in_stretch(loop.body[last - 1]):
            last -= 1
        if not may_rotate(loop):
            return None
        before, test = self._run_and_test(loop.body[last:], loop.test)
        if before is None or test is None:
            return None
        ends = self.stretches.pop()
        body = self.block(loop.body[:last], ends_loop=False)
        self.stretches.append(ends)
        leaves = ast.If(ast.UnaryOp(ast.Not(), test), [ast.Break()], [])
        turns = ast.While(ast.Constant(True), [*body, *before, leaves], [])
        made = ast.If(loop.test, [turns], [])
        for node in ast.walk(made):
            if "lineno" in node._attributes and not hasattr(node, "lineno"):
                ast.copy_location(node, loop.test)
        return made

    def _seam(self, statement: ast.stmt, test: ast.expr | None, *, ends_loop: bool) -> ast.stmt:
        """The statement itself, with stretches in its blocks. ``test``: in place of its own."""
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            return statement
        if isinstance(statement, ast.While) and (rotated := self._rotated(statement)) is not None:
            return rotated
        made = copy.copy(statement)
        if test is not None:
            made.test = test  # type: ignore[attr-defined]
        for name in _BLOCKS:
            block = getattr(statement, name, None)
            if block:
                setattr(made, name, self.block(block, ends_loop=_ends_loop(statement, name, ends_loop)))
        for name in ("handlers", "cases"):
            parts = getattr(statement, name, None)
            if parts:
                setattr(made, name, [self._part(part, ends_loop=ends_loop) for part in parts])
        return made

    def _part(self, part: ast.AST, *, ends_loop: bool) -> ast.AST:
        made = copy.copy(part)
        made.body = self.block(part.body, ends_loop=ends_loop)  # type: ignore[attr-defined]
        return made


def _ends_loop(statement: ast.stmt, block: str, is_last: bool) -> bool:
    """Whether nothing follows ``block`` in its loop, if ``statement`` is the last one in the loop's body."""
    match statement:
        case ast.For() | ast.AsyncFor() | ast.While() if block == "body":
            return True
        case ast.Try(orelse=[_, *_]) if block == "body":
            return False
    return is_last


def covers(statement: ast.stmt | ast.expr, line: int) -> bool:
    """Whether ``line`` is in the statement or expression."""
    return statement.lineno <= line <= (statement.end_lineno or statement.lineno)


def can_be_moved(statement: ast.stmt, scope: Scope) -> bool:
    """Whether a statement may run in a function of its own."""
    for node in own_nodes([statement]):
        if isinstance(node, _FIXED) or (isinstance(node, ast.Name) and node.id in _OF_FUNCTIONS):
            return False
        if isinstance(node, ast.comprehension) and node.is_async:
            return False
        if isinstance(node, ast.ImportFrom) and node.names[0].name == "*":
            return False
        if scope.is_module and isinstance(node, ast.AnnAssign):
            return False
    return True
