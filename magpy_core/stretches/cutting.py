"""Cuts blocks of statements into stretches, with the statements that are none of them in between. Key type: Cutter."""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Collection, Sequence

from magpy_core.stretches.conditions import computed_part, may_rotate, with_value
from magpy_core.stretches.names import bound_names, own_nodes
from magpy_core.stretches.seam_clock import Seam, head_of, marked
from magpy_core.stretches.seam_parts import Span, contains, is_evaluated_first, parts_of, with_parts
from magpy_core.stretches.stretch import Place, Scope, Stretch

_SUSPENDS = (ast.Yield, ast.YieldFrom, ast.Await)
_FIXED = (*_SUSPENDS, ast.AsyncFor, ast.AsyncWith, ast.Global, ast.Nonlocal)
_BLOCKS = ("body", "orelse", "finalbody")
#: Names whose value depends on all variables of the frame that uses them, and the errors about unbound variables, whose
#: class depends on it.
OF_FRAMES = frozenset({"locals", "vars", "dir", "eval", "exec", "NameError", "UnboundLocalError"})
_OF_FUNCTIONS = OF_FRAMES | {"super", "__class__"}


class Cutter:
    """``is_seam``: statements that are to be in no stretch (but blocks in them may hold some); ``is_worth``: whether
    statements are worth a stretch; ``moves``: whether a stretch may compute an expression of a seam; ``spans``: of what in
    seams can't be captured; ``plain``: places of stretches that are not to be made. ``stretches``: those that were made, in
    the order of the source. ``seams``: those with marks around them, if they are ``timed``."""

    def __init__(
        self,
        scope: Scope,
        is_seam: Callable[[ast.stmt | ast.expr], bool],
        is_worth: Callable[[Sequence[ast.stmt]], bool],
        moves: Callable[[ast.expr], bool] = lambda value: False,
        spans: Collection[Span] = (),
        *,
        plain: Collection[Place] = (),
        timed: bool = False,
    ) -> None:
        self._scope, self._is_seam, self._is_worth = scope, is_seam, is_worth
        self._moves, self._spans, self._plain, self._timed = moves, spans, plain, timed
        self.stretches: list[Stretch] = []
        self.seams: list[Seam] = []

    def block(self, statements: Sequence[ast.stmt], *, ends_loop: bool) -> list[ast.stmt]:
        """The block with calls of stretches. ``ends_loop``: nothing follows it in the body of a loop."""
        made: list[ast.stmt] = []
        run: list[ast.stmt] = []
        for statement in statements:
            if self._is_in_stretch(statement):
                run.append(statement)
                continue
            before, seam = self._before_and_seam(run, statement)
            made += before
            *before, seam = self._seam(seam, ends_loop=ends_loop and statement is statements[-1])
            made += before
            made += self._with_marks(statement, seam)
            run = []
        return made + self._run(run, ends_loop=ends_loop)

    def _is_in_stretch(self, statement: ast.stmt) -> bool:
        return not self._is_seam(statement) and can_be_moved(statement, self._scope)

    def _run(self, statements: list[ast.stmt], *, ends_loop: bool) -> list[ast.stmt]:
        stretch = self._stretch(statements, ends_loop=ends_loop)
        if stretch is None or not stretch.can_stand or stretch.place in self._plain:
            return statements
        self.stretches.append(stretch)
        return stretch.call()

    def _stretch(self, statements: list[ast.stmt], *, ends_loop: bool) -> Stretch | None:
        if not statements or not self._is_worth(statements):
            return None
        return Stretch.of(self._scope, statements, ends_loop=ends_loop)

    def _before_and_seam(self, statements: list[ast.stmt], seam: ast.stmt) -> tuple[list[ast.stmt], ast.stmt]:
        """What stands in for ``statements``, and for the ``seam`` after them. Their stretch also computes what the seam
        evaluates first, if it can."""
        if isinstance(seam, ast.If):
            before, test = self._run_and_test(statements, seam.test)
            if before is not None:
                made = copy.copy(seam)
                made.test = test or seam.test
                return before, made
        first = (part for part in self._parts(seam) if is_evaluated_first(part, seam, bound_names(statements)))
        for part in first:
            if (computed := self._run_and_value(statements, part)) is not None:
                before, call = computed
                return before, with_parts(seam, {id(part): call})
        return self._run(statements, ends_loop=False), seam

    def _run_and_test(self, statements: list[ast.stmt], test: ast.expr) -> tuple[list[ast.stmt] | None, ast.expr | None]:
        """What stands in for ``statements``, and for the ``test`` after them, if their stretch computes it."""
        part = computed_part(test, bound_names(statements))
        computed = self._run_and_value(statements, part) if part is not None and self._can_move(part) else None
        if computed is None:
            return None, None
        before, call = computed
        return before, with_value(test, call)

    def _run_and_value(self, statements: list[ast.stmt], value: ast.expr) -> tuple[list[ast.stmt], ast.expr] | None:
        """What stands in for ``statements``, and for the ``value`` that their stretch computes."""
        stretch = self._stretch(statements, ends_loop=False)
        made = stretch.with_value(value) if stretch is not None else None
        if made is None:
            return None
        if made.place in self._plain:
            return statements, value
        self.stretches.append(made)
        return made.call_as_value()

    def _can_move(self, value: ast.expr) -> bool:
        if self._scope.is_module or not self._moves(value) or any(contains(value, span) for span in self._spans):
            return False
        return can_be_moved(ast.copy_location(ast.Expr(value), value), self._scope)

    def _parts(self, seam: ast.stmt) -> list[ast.expr]:
        """Those that stretches can compute."""
        return [part for part in parts_of(seam, self._spans) if self._can_move(part)]

    def _with_parts(self, seam: ast.stmt) -> tuple[list[ast.stmt], ast.stmt]:
        """What is to stand before ``seam``, and in its place, with stretches for parts of its expression."""
        before: list[ast.stmt] = []
        calls: dict[int, ast.expr] = {}
        for part in self._parts(seam):
            stretch = Stretch(self._scope, (), value=part)
            if stretch.place in self._plain:
                continue
            self.stretches.append(stretch)
            definition, calls[id(part)] = stretch.call_as_value()
            before += definition
        return before, with_parts(seam, calls) if calls else seam

    def _rotated(self, loop: ast.While) -> ast.stmt | None:
        """``loop`` with its test at the end of its body, in the body's last stretch; None: it can't be moved there."""
        last = len(loop.body)
        while last and self._is_in_stretch(loop.body[last - 1]):
            last -= 1
        if not may_rotate(loop):
            return None
        made_before = len(self.stretches)
        before, test = self._run_and_test(loop.body[last:], loop.test)
        if before is None or test is None or len(self.stretches) == made_before:
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

    def _seam(self, statement: ast.stmt, *, ends_loop: bool) -> list[ast.stmt]:
        """The statement itself, with stretches in its blocks and for parts of its expression."""
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            return [statement]
        if isinstance(statement, ast.While) and (rotated := self._rotated(statement)) is not None:
            return [rotated]
        before, made = self._with_parts(statement)
        made = copy.copy(made)
        for name in _BLOCKS:
            block = getattr(statement, name, None)
            if block:
                setattr(made, name, self.block(block, ends_loop=_ends_loop(statement, name, ends_loop)))
        for name in ("handlers", "cases"):
            parts = getattr(statement, name, None)
            if parts:
                setattr(made, name, [self._branch(part, ends_loop=ends_loop) for part in parts])
        return [*before, made]

    def _with_marks(self, statement: ast.stmt, made: ast.stmt) -> list[ast.stmt]:
        """``made``, which stands in for ``statement``, with marks if the statement itself, or its head, is a seam."""
        head = head_of(statement)
        own: list[ast.expr] | list[ast.stmt] = [statement] if head is None else head
        if not self._timed or not any(self._is_seam(one) for one in own):
            return [made]
        if any(isinstance(node, _SUSPENDS) for node in own_nodes(own)):
            return [made]  # its time is others'
        last = max(one.end_lineno or one.lineno for one in own)
        seam = Seam(self._scope.file, range(statement.lineno, last + 1))
        self.seams.append(seam)
        return marked(seam, made)

    def _branch(self, part: ast.AST, *, ends_loop: bool) -> ast.AST:
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
