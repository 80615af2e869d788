"""Finds training loops in the source of a module, and makes their bodies stretches. Key function: cut_loops.

A training loop is the innermost loop in whose body `backward` and an optimizer's `step` are called. It and the loops around
it, also those that call the function that it stands in, are marked, so that it is known how far they have come. The body of
a closure that is passed to `step` is a stretch, too: an optimizer may call it many times.
"""

from __future__ import annotations

import ast
import builtins
import itertools
import re
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from types import CodeType
from typing import Any

from magpy_core.stretches.constants import Constants
from magpy_core.stretches.cutting import OF_FRAMES, Cutter
from magpy_core.stretches.marks import mark, passed
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
    return any(function.attr == "step" for function in called) and evaluates(statements)


def evaluates(statements: Sequence[ast.stmt]) -> bool:
    """Whether ``statements`` call `backward` on something that they compute, as the closure of an optimizer's step does."""
    called = [
        node.func for node in own_nodes(statements) if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
    ]
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


_numbers = itertools.count(1)


@dataclass(frozen=True, eq=False)
class TrainingLoop:
    """A `for` loop that runs training steps. ``around``: those of the same function that it is in. Its first mark gets what
    it goes over, its second one is reached in each iteration."""

    around: frozenset[TrainingLoop]
    name: str = field(default_factory=lambda: f"magpy loop {next(_numbers)}")

    @property
    def iteration_name(self) -> str:
        return f"{self.name} iteration"


#: Makes what a loop's two marks tell.
Watch = Callable[[TrainingLoop], tuple[Any, Any]]


class _Finder(ast.NodeVisitor):
    """Replaces the bodies of training loops, and of ``closures``, by stretches. ``training``: functions that run such loops;
    ``loops``: what runs training steps, but is in no stretch."""

    def __init__(self, file: str, code: CodeType, training: Collection[str], closures: Collection[str]) -> None:
        self._file, self.codes, self.constants = file, dict(_codes(code)), Constants(code)
        self._future, self._training, self._closures = future_flags(code), training, closures
        self._scope: Scope | None = Scope(file, self.constants, future=self._future)
        self._around: frozenset[TrainingLoop] = frozenset()
        self.stretches: list[Stretch] = []
        self.loops: list[tuple[ast.For, TrainingLoop]] = []

    def _function(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        before, self._scope, self._around = (self._scope, self._around), self._scope_of(node), frozenset()
        found = len(self.stretches)
        for statement in node.body:
            self.visit(statement)
        if len(self.stretches) == found and node.name in self._closures and isinstance(node, ast.FunctionDef):
            self._closure(node)
        self._scope, self._around = before

    def _closure(self, node: ast.FunctionDef) -> None:
        if self._scope is None or not evaluates(node.body):
            return
        text = 1 if ast.get_docstring(node, clean=False) is not None else 0
        cutter = Cutter(self._scope, lambda statement: False, evaluates)
        node.body = node.body[:text] + cutter.block(node.body[text:], ends_loop=False)
        self.stretches += cutter.stretches

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
        found, inside, around = len(self.stretches), len(self.loops), self._around
        loop = TrainingLoop(around) if _runs_steps(_called(node.body), self._training) else None
        self._around = around if loop is None else around | {loop}
        self.generic_visit(node)
        self._around = around
        if len(self.stretches) == found and self._scope is not None and trains(node.body) and not _inner_trains(node):
            del self.loops[inside:]  # a stretch is recorded as it is
            reports = _around_the_step(node.body)
            targets = [node.target] if isinstance(node, ast.For) else []
            scope = replace(self._scope, counted=frozenset(bound_names(targets)))
            cutter = Cutter(scope, lambda statement: statement in reports, trains)
            node.body = cutter.block(node.body, ends_loop=True)
            self.stretches += cutter.stretches
        if loop is not None and isinstance(node, ast.For):
            self.loops.append((node, loop))

    def mark_loops(self) -> list[TrainingLoop]:
        """Marks those that were found."""
        for node, loop in self.loops:
            node.iter = passed(loop.name, node.iter)
            node.body = [mark(loop.iteration_name, node.body[0]), *node.body]
        return [loop for _, loop in self.loops]

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


def _runs_steps(called: Collection[str], training: Collection[str]) -> bool:
    """Whether statements that call functions of these names run training steps."""
    return {"backward", "step"}.issubset(called) or not set(training).isdisjoint(called)


def _training_functions(tree: ast.Module) -> set[str]:
    """The names of the functions in ``tree`` that run training steps, by themselves or by calling such a function."""
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    calls = {(node.name, number): _called(node.body) for number, node in enumerate(functions)}
    found: set[str] = set()
    while more := {name for (name, _), called in calls.items() if name not in found and _runs_steps(called, found)}:
        found |= more
    return found


def _closures(tree: ast.Module) -> set[str]:
    """The names of what is passed to a `step`."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "step":
            given = [*node.args, *(one.value for one in node.keywords if one.arg == "closure")]
            found |= {one.id for one in given if isinstance(one, ast.Name)}
    return found


def cut_loops(
    tree: ast.Module,
    file: str,
    code: CodeType,
    receiver: Callable[[Stretch], Any],
    watch: Watch | None = None,
) -> tuple[ast.Module, Callable[[CodeType], CodeType]]:
    """``tree`` (changed in place) with its training loops cut, and what is to be done with its compiled code. ``code``: that
    of the module as it is; ``receiver``: makes what calls of a stretch go to, as ``receiver @ function``; ``watch``: makes
    what marks in loops are; None: no loop is marked."""
    finder = _Finder(file, code, _training_functions(tree) if watch is not None else (), _closures(tree))
    finder.visit(tree)
    stretches = finder.stretches
    receivers = {stretch.name: receiver(stretch) for stretch in stretches}
    if watch is not None:
        for loop in finder.mark_loops():
            receivers[loop.name], receivers[loop.iteration_name] = watch(loop)
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
