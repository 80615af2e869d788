"""A stretch: consecutive statements of a function or a module that run as a function of their own.

The function reads and writes the variables of the statements' scope: as free variables, so that unbound variables, `del`
and the program's own closures work as before, or as globals in a module. Its code has the statements' positions, and the
name of the function that they stand in. Key types: Stretch, Scope.
"""

from __future__ import annotations
import __future__

import ast
import copy
import functools
import itertools
import operator
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from types import CodeType
from typing import Any

from magpy_core.stretches.constants import Constants
from magpy_core.stretches.leaving import Exit, as_returns
from magpy_core.stretches.names import bound_names
from magpy_core.stretches.seam_parts import Span, span_of

_OURS = "magpy "  # no variable of a program has a space in its name
_PREFIX, _STATUS = f"{_OURS}stretch ", f"{_OURS}status"
_numbers = itertools.count(1)
_FUTURE: int = functools.reduce(
    operator.or_, (getattr(__future__, name).compiler_flag for name in __future__.all_feature_names)
)


#: The lines of a stretch's statements, and its value's.
Place = tuple[range, Span | None]


def future_flags(code: CodeType) -> int:
    """The `__future__` statements that ``code`` was compiled with."""
    return code.co_flags & _FUTURE


@dataclass(frozen=True)
class Scope:
    """Where statements stand. ``constants``: of the program's code; ``shared``: variables that closures of the program may
    hold, too; ``global_names``: names that the function declares global; ``future``: flags of `__future__` statements;
    ``counted``: variables that the loop around them sets."""

    file: str
    constants: Constants = field(repr=False)
    name: str = "<module>"
    qualname: str = "<module>"
    global_names: frozenset[str] = frozenset()
    shared: frozenset[str] = frozenset()
    future: int = 0
    counted: frozenset[str] = frozenset()

    @property
    def is_module(self) -> bool:
        return self.name == "<module>"


@dataclass(frozen=True, eq=False)
class Stretch:
    """``ends_loop``: nothing follows in the body of the loop that the statements stand in; ``value``: an expression of the
    statement after them, which the function returns. There may be no statements then."""

    scope: Scope
    statements: tuple[ast.stmt, ...]
    ends_loop: bool = False
    exits: frozenset[Exit] = frozenset()
    value: ast.expr | None = None
    name: str = field(default_factory=lambda: f"{_PREFIX}{next(_numbers)}")

    @staticmethod
    def of(scope: Scope, statements: Sequence[ast.stmt], *, ends_loop: bool = False) -> Stretch:
        exits = as_returns(copy.deepcopy(list(statements)))[1]
        return Stretch(scope, tuple(statements), ends_loop, frozenset(exits))

    @property
    def lines(self) -> range:
        """1-based lines of the source, of the statements, or of the value without any."""
        return _lines(self._first, self.statements[-1]) if self.statements else self.value_lines

    @property
    def value_lines(self) -> range:
        """Those of the value."""
        return range(0) if self.value is None else _lines(self.value, self.value)

    @property
    def _first(self) -> ast.stmt | ast.expr:
        first = self.statements[0] if self.statements else self.value
        assert first is not None
        return first

    @property
    def place(self) -> Place:
        """Where it stands in its function; no two stretches have the same."""
        return self.lines, None if self.value is None else span_of(self.value)

    @property
    def where(self) -> str:
        """Its lines as text; line and column if it has no statements."""
        first, last = self.lines.start, self.lines.stop - 1
        if not self.statements:
            return f"{first}:{self._first.col_offset + 1}"
        return f"{first}-{last}" if last > first else str(first)

    def with_value(self, value: ast.expr) -> Stretch | None:
        """The stretch that computes ``value``, too; None: it could not say how it was left."""
        return None if self.exits else replace(self, value=value, name=f"{_PREFIX}{next(_numbers)}")

    def definition(self, body: Sequence[ast.stmt] | None = None) -> ast.FunctionDef:
        """The function. ``body``: stands in for the statements."""
        statements = [_Plain().visit(one) for one in copy.deepcopy(list(body or self.statements))]
        statements = as_returns(statements)[0]
        if self.value is not None:
            statements.append(ast.copy_location(ast.Return(copy.deepcopy(self.value)), self.value))
        bound = {name for name in bound_names(statements) if not name.startswith(_OURS)}
        global_names = bound if self.scope.is_module else bound & self.scope.global_names
        declared: list[ast.stmt] = []
        if global_names:
            declared.append(ast.Global(sorted(global_names)))
        if bound - global_names:
            declared.append(ast.Nonlocal(sorted(bound - global_names)))
        made = _function(self.name, [], [*declared, *statements])
        self._placed(made)
        return made

    def call(self) -> list[ast.stmt]:
        """The statements that stand in for this one's: a receiver (`finished` inserts it) gets the function."""
        made, call = self._definition_and_call()
        left = sorted(self._followed_exits, key=lambda one: one.value)
        if not left:
            return [*made, self._placed(ast.Expr(call))]
        if left in ([Exit.BREAK], [Exit.CONTINUE]):
            return [*made, self._placed(_if_is(call, left[0]))]
        assert not self.scope.is_module
        status = ast.Name(_STATUS, ast.Load())
        made.append(self._placed(ast.Assign([ast.Name(_STATUS, ast.Store())], call)))
        made += [self._placed(_if_is(status, one)) for one in left if one is not Exit.RETURN]
        if Exit.RETURN in left:
            value = ast.Return(ast.Subscript(status, ast.Constant(0), ast.Load()))
            made.append(self._placed(ast.If(ast.Compare(status, [ast.IsNot()], [ast.Constant(None)]), [value], [])))
        return made

    def call_as_value(self) -> tuple[list[ast.stmt], ast.expr]:
        """What stands in for the statements, and for the value."""
        assert self.value is not None
        made, call = self._definition_and_call()
        return made, self._placed(call)

    def _definition_and_call(self) -> tuple[list[ast.stmt], ast.expr]:
        given: ast.expr = ast.Constant(None) if self.scope.is_module else ast.Name(self.name, ast.Load())
        call = ast.BinOp(ast.Constant(self.name), ast.MatMult(), given)  # calling a constant causes a SyntaxWarning
        return [] if self.scope.is_module else [*self._variables(), self.definition()], call

    def _variables(self) -> list[ast.stmt]:
        """Code that never runs, and is left out by Python's compiler: the variables remain the frame's."""
        names = sorted(bound_names(self.statements) - self.scope.global_names)
        targets: list[ast.expr] = [ast.Name(name, ast.Store()) for name in names]
        return [self._placed(ast.If(ast.Constant(False), [ast.Assign(targets, ast.Constant(None))], []))] if names else []

    @property
    def _followed_exits(self) -> frozenset[Exit]:
        """Exits after which the frame has something to do."""
        is_next = self.ends_loop and Exit.RETURN not in self.exits
        return self.exits - {Exit.CONTINUE} if is_next else self.exits

    @property
    def can_stand(self) -> bool:
        """Whether `call` can be written: a module has no variable for how a stretch was left."""
        return not self.scope.is_module or len(self._followed_exits) <= 1

    def _placed(self, node: Any) -> Any:
        first = self._first
        for one in ast.walk(node):
            if "lineno" in one._attributes and not hasattr(one, "lineno"):
                ast.copy_location(one, first)
                one.end_lineno, one.end_col_offset = first.lineno, first.col_offset + 1  # type: ignore[attr-defined]
        return node


def _lines(first: ast.stmt | ast.expr, last: ast.stmt | ast.expr) -> range:
    return range(first.lineno, (last.end_lineno or last.lineno) + 1)


def _function(name: str, parameters: Sequence[str], body: list[ast.stmt]) -> ast.FunctionDef:
    arguments = ast.arguments([], [ast.arg(one) for one in parameters], None, [], [], None, [])
    made = ast.FunctionDef(name, arguments, body, [])
    if "type_params" in made._fields:
        made.type_params = []  # type: ignore[attr-defined]
    return made


def _if_is(value: ast.expr, kind: Exit) -> ast.If:
    leaves: ast.stmt = ast.Continue() if kind is Exit.CONTINUE else ast.Break()
    return ast.If(ast.Compare(value, [ast.Is()], [ast.Constant(kind is Exit.CONTINUE)]), [leaves], [])


class _Plain(ast.NodeTransformer):
    """Drops annotations of variables, which functions do not evaluate: such a name could not be declared nonlocal."""

    def _scope(self, node: ast.AST) -> ast.AST:
        return node

    visit_FunctionDef = visit_AsyncFunctionDef = visit_ClassDef = visit_Lambda = _scope

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.stmt:
        if not isinstance(node.target, ast.Name):
            return node
        plain = ast.Assign([node.target], node.value) if node.value is not None else ast.Pass()
        return ast.copy_location(plain, node)


def code_of(stretch: Stretch, free: Sequence[str], body: Sequence[ast.stmt] | None = None) -> CodeType:
    """Compiles the function of ``stretch`` by itself. ``free``: its free variables; ``body``: in place of its statements."""
    definition = stretch.definition(body)
    outer = _function("outer", free, [definition])
    tree = ast.Module([ast.fix_missing_locations(ast.copy_location(outer, definition))], [])
    module = compile(tree, stretch.scope.file, "exec", flags=stretch.scope.future, dont_inherit=True)
    (outside,) = (const for const in module.co_consts if isinstance(const, CodeType))
    (inside,) = (const for const in outside.co_consts if isinstance(const, CodeType))
    return inside


def finished(code: CodeType, receivers: dict[str, Any], scopes: dict[str, Scope], constants: Constants) -> CodeType:
    """``code`` with ``receivers`` in place of the names of stretches, whose functions are named like those they are cut
    from, and with the program's ``constants``."""
    return _finished(code, receivers, scopes, constants, "", "")


def _finished(
    code: CodeType, receivers: dict[str, Any], scopes: dict[str, Scope], constants: Constants, cut: str, name: str
) -> CodeType:
    """``cut``: the qualified name of the stretch's function that ``code`` is in, which becomes ``name``."""
    if code.co_name in scopes:
        scope = scopes[code.co_name]
        cut, name = code.co_qualname, "" if scope.is_module else scope.qualname
        code = code.replace(co_name=scope.name)
    consts: list[Any] = []
    for const in code.co_consts:
        if isinstance(const, CodeType):
            const = _finished(const, receivers, scopes, constants, cut, name)
        elif isinstance(const, str) and const in receivers:
            const = receivers[const]
        else:
            const = constants.same(_renamed(const, cut, name) if isinstance(const, str) else const)
        consts.append(const)
    return code.replace(co_consts=tuple(consts), co_qualname=_renamed(code.co_qualname, cut, name))


def _renamed(qualname: str, cut: str, name: str) -> str:
    if not cut or not qualname.startswith(cut):
        return qualname
    inner = qualname[len(cut) :]
    return name + inner if name else inner.removeprefix(".<locals>.") or "<module>"
