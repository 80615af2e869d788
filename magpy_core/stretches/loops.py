"""Finds training loops in the source of a module, and makes their bodies stretches. Key function: cut_loops.

A training loop is the innermost loop in whose body `backward` and an optimizer's `step` are called.
"""

from __future__ import annotations

import ast
import builtins
import itertools
import re
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace
from types import CodeType
from typing import Any

from magpy_core.stretches.constants import Constants
from magpy_core.stretches.cutting import OF_FRAMES, Cutter
from magpy_core.stretches.names import bound_names, global_names, has_private_names, own_nodes
from magpy_core.stretches.originals import remember
from magpy_core.stretches.stretch import Scope, Stretch, finished, future_flags

_Loop = ast.For | ast.While
_Named = ast.Attribute | ast.Name
_REPORTING = re.compile(r"print|log|report|write|eval|valid|save|info|debug|scalar|postfix|checkpoint|echo", re.IGNORECASE)


def may_train(source: bytes) -> bool:
    """Whether a look at the source is worth its time."""
    return b"backward(" in source and b".step(" in source


def trains(statements: Sequence[ast.stmt]) -> bool:
    """Whether ``statements`` call `step`, and `backward` on something that they compute."""
    called = [
        node.func for node in own_nodes(statements) if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
    ]
    if all(function.attr != "step" for function in called):
        return False
    attributes = (node for node in own_nodes(statements) if isinstance(node, ast.Attribute))
    computed = {ast.unparse(node) for node in attributes if isinstance(node.ctx, ast.Store)} | bound_names(statements)
    return any(_is_computed(function.value, computed) for function in called if function.attr == "backward")


def _is_computed(loss: ast.expr, computed: Collection[str]) -> bool:
    """Whether ``loss`` has something ``computed`` in it, or a call of a function or module of the program's, as in
    `criterion(model(x), y)`; a method of something else may only change it: `scaler.scale(loss)`, `loss.mean()`."""
    parts = list(ast.walk(loss))
    if any(ast.unparse(part) in computed for part in parts if isinstance(part, _Named)):
        return True
    return any(isinstance(part, ast.Call) and part.args and _is_own(part.func) for part in parts)


def _is_own(function: ast.expr) -> bool:
    if isinstance(function, ast.Attribute):
        return isinstance(function.value, ast.Name) and function.value.id == "self"
    return isinstance(function, ast.Name) and not hasattr(builtins, function.id)


class _Finder(ast.NodeVisitor):
    """Replaces the bodies of training loops by stretches."""

    def __init__(self, file: str, code: CodeType) -> None:
        self._file, self.codes, self.constants = file, dict(_codes(code)), Constants(code)
        self._future = future_flags(code)
        self._scope: Scope | None = Scope(file, self.constants, future=self._future)
        self.stretches: list[Stretch] = []

    def _function(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        before, self._scope = self._scope, self._scope_of(node)
        for statement in node.body:
            self.visit(statement)
        self._scope = before

    visit_FunctionDef = visit_AsyncFunctionDef = _function

    def visit_Lambda(self, node: ast.Lambda) -> None:
        pass

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        scope, self._scope = self._scope, None
        for statement in node.body:
            self.visit(statement)
        self._scope = scope

    def _scope_of(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> Scope | None:
        first = node.decorator_list[0].lineno if node.decorator_list else node.lineno
        code = self.codes.get((node.name, first))
        names = {one.id for one in own_nodes(node.body) if isinstance(one, ast.Name)}
        if code is None or names & OF_FRAMES or has_private_names([node]):
            return None
        shared = frozenset(code.co_cellvars + code.co_freevars)
        declared = frozenset(global_names(node.body))
        return Scope(self._file, self.constants, node.name, code.co_qualname, declared, shared, self._future)

    def _loop(self, node: _Loop) -> None:
        found = len(self.stretches)
        self.generic_visit(node)
        if len(self.stretches) == found and self._scope is not None and trains(node.body) and not _inner_trains(node):
            around = _around_the_step(node.body)
            targets = [node.target] if isinstance(node, ast.For) else []
            scope = replace(self._scope, counted=frozenset(bound_names(targets)))
            cutter = Cutter(scope, lambda statement: statement in around, trains)
            node.body = cutter.block(node.body, ends_loop=True)
            self.stretches += cutter.stretches

    visit_For = visit_While = _loop


def _around_the_step(body: Sequence[ast.stmt]) -> list[ast.stmt]:
    """Conditions that only report, evaluate or save now and then, before or after everything that belongs to the step."""
    last = max(i for i, one in enumerate(body) if _called([one]) & {"backward", "step"})
    head = list(itertools.takewhile(_reports, body))
    return [*head, *(one for one in body[last + 1 :] if _reports(one))]


def _reports(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.If) and any(_REPORTING.search(name) for name in _called([statement]))


def _called(statements: Iterable[ast.stmt]) -> set[str]:
    """The names of the functions and methods that ``statements`` call."""
    functions = (node.func for node in own_nodes(statements) if isinstance(node, ast.Call))
    return {one.attr if isinstance(one, ast.Attribute) else one.id for one in functions if isinstance(one, _Named)}


def _inner_trains(loop: _Loop) -> bool:
    inner = (node for node in own_nodes(loop.body) if isinstance(node, _Loop))
    return any(trains(node.body) for node in inner)


def cut_loops(
    tree: ast.Module, file: str, code: CodeType, receiver: Callable[[Stretch], Any]
) -> tuple[ast.Module, Callable[[CodeType], CodeType]]:
    """``tree`` (changed in place) with its training loops cut, and what is to be done with its compiled code. ``code``: that
    of the module as it is; ``receiver``: makes what calls of a stretch go to, as ``receiver @ function``."""
    finder = _Finder(file, code)
    finder.visit(tree)
    stretches = finder.stretches
    receivers = {stretch.name: receiver(stretch) for stretch in stretches}
    scopes = {stretch.name: stretch.scope for stretch in stretches}

    def finish(compiled: CodeType) -> CodeType:
        made = finished(compiled, receivers, scopes, finder.constants)
        for key, one in _codes(made) if receivers else ():
            if key in finder.codes and finder.codes[key] != one:
                remember(one, finder.codes[key])
        return made

    return tree, finish


def _codes(code: CodeType) -> Iterable[tuple[tuple[str, int], CodeType]]:
    """The codes of functions, by name and first line; those that share them are left out."""
    found: dict[tuple[str, int], list[CodeType]] = {}
    todo: Sequence[CodeType] = [code]
    while todo:
        inner = [const for one in todo for const in one.co_consts if isinstance(const, CodeType)]
        for one in inner:
            found.setdefault((one.co_name, one.co_firstlineno), []).append(one)
        todo = inner
    return ((key, codes[0]) for key, codes in found.items() if len(codes) == 1)
