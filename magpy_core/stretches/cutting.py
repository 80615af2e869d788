"""Cuts blocks of statements into stretches, with the statements that are none of them in between. Key type: Cutter."""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Sequence

from magpy_core.stretches.names import own_nodes
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
    statements are worth a stretch. ``stretches``: those that were made, in the order of the source."""

    def __init__(
        self, scope: Scope, is_seam: Callable[[ast.stmt], bool], is_worth: Callable[[Sequence[ast.stmt]], bool]
    ) -> None:
        self._scope, self._is_seam, self._is_worth = scope, is_seam, is_worth
        self.stretches: list[Stretch] = []

    def block(self, statements: Sequence[ast.stmt], *, ends_loop: bool) -> list[ast.stmt]:
        """The block with calls of stretches. ``ends_loop``: nothing follows it in the body of a loop."""
        made: list[ast.stmt] = []
        run: list[ast.stmt] = []
        for statement in statements:
            if self._is_seam(statement) or not can_be_moved(statement, self._scope):
                made += self._run(run, ends_loop=False)
                made.append(self._seam(statement, ends_loop=ends_loop and statement is statements[-1]))
                run = []
            else:
                run.append(statement)
        return made + self._run(run, ends_loop=ends_loop)

    def _run(self, statements: list[ast.stmt], *, ends_loop: bool) -> list[ast.stmt]:
        if not statements or not self._is_worth(statements):
            return statements
        stretch = Stretch.of(self._scope, statements, ends_loop=ends_loop)
        if not stretch.can_stand:
            return statements
        self.stretches.append(stretch)
        return stretch.call()

    def _seam(self, statement: ast.stmt, *, ends_loop: bool) -> ast.stmt:
        """The statement itself, with stretches in its blocks."""
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            return statement
        made = copy.copy(statement)
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


def covers(statement: ast.stmt, line: int) -> bool:
    """Whether ``line`` is in the statement."""
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
