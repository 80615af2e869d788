"""Functions of the program whose code calls stretches, from `Functions.begin` to its `end`. Key types: Functions, Line.

A function's code is replaced in the function object, which reaches bound methods and closures, too. It is compiled from the
source, if that still gives the code which the function has. At other times the function has its own code: torch.compile,
for one, would fail on the other.
"""

from __future__ import annotations

import ast
import functools
import gc
import linecache
import sys
import threading
import weakref
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from types import CodeType, FunctionType
from typing import Any

from magpy_core._compat.torch.warning_filters import no_warnings
from magpy_core.stretches.constants import Constants
from magpy_core.stretches.cutting import OF_FRAMES, Cutter, covers
from magpy_core.stretches.names import global_names, own_nodes
from magpy_core.stretches.originals import remember
from magpy_core.stretches.seam_clock import SeamClock, marks
from magpy_core.stretches.seam_parts import Span
from magpy_core.stretches.stretch import Place, Scope, Stretch, finished, future_flags

#: Makes what calls of a stretch go to, as ``receiver @ function``.
MakeReceiver = Callable[[Stretch], Any]
#: Gives the clock for the seams of the region that runs, if one does.
FindClock = Callable[[], SeamClock | None]


@dataclass(frozen=True)
class Line:
    """A line in a function; ``number`` is 1-based. ``span``: of an expression that begins in it, in code points."""

    file: str
    function: str
    number: int
    span: Span | None = None


@dataclass(eq=False)
class _CutFunction:
    original: CodeType
    functions: list[weakref.ref[FunctionType]] = field(default_factory=list)
    made: CodeType | None = None
    seams: frozenset[Line] = frozenset()
    values: frozenset[Line] = frozenset()
    """Expressions of seams in these lines are computed by no stretch."""
    plain: frozenset[Place] = frozenset()
    """Of stretches that are the function's own statements again, once it has been cut again."""
    is_settled: bool = False
    """Whether it can't be cut (again)."""


class Functions:
    """The functions that were cut. ``receiver``: of a stretch; a stretch of the same lines as one before gets the same."""

    def __init__(self, receiver: MakeReceiver, clock: FindClock | None = None) -> None:
        self._receiver, self._clock = receiver, clock
        self._cut: list[_CutFunction] = []
        self._receivers: dict[tuple[Any, ...], Any] = {}
        self._dissolved: list[Stretch] = []
        self._serving = 0
        self._lock = threading.RLock()

    def begin(self) -> None:
        """The functions call stretches from now on, in all threads, until `end`."""
        with self._lock:
            self._serving += 1
            if self._serving == 1:
                for cut in self._cut:
                    if cut.made is not None:
                        _exchange(cut.functions, cut.original, cut.made)

    def end(self) -> None:
        with self._lock:
            self._serving -= 1
            if not self._serving:
                for cut in self._cut:
                    if cut.made is not None:
                        _exchange(cut.functions, cut.made, cut.original)

    def add_seams(self, lines: Iterable[Line], values: Iterable[Line] = ()) -> bool:
        """Statements of these lines are in no stretch from now on, but for parts of their expressions that don't contain the
        lines' spans; nor are expressions of seams in the lines ``values``. Returns whether a function was cut (again)."""
        with self._lock:
            self._cut = [cut for cut in self._cut if any(one() is not None for one in cut.functions)]
            wanted, left = list(lines), list(values)
            new = [line for line in wanted if not any(_contains(cut.original, line) for cut in self._cut)]
            self._cut += _cut_functions(new)
            return any([self._add_seams(cut, _in(wanted, cut), _in(left, cut)) for cut in self._cut])

    def dissolve(self, stretch: Stretch) -> None:
        """What is in ``stretch`` is to be its function's own again, from the next `recut` on."""
        with self._lock:
            self._dissolved.append(stretch)

    def recut(self) -> None:
        """Cuts functions again in which stretches have dissolved. Once for many of them: it takes milliseconds."""
        if not self._dissolved:
            return
        with self._lock:
            dissolved, self._dissolved = self._dissolved, []
            for cut in self._cut:
                places = {stretch.place for stretch in dissolved if _contains(cut.original, _first_line_of(stretch))}
                if not cut.plain >= places:
                    cut.plain |= places
                    self._cut_again(cut)

    def are_cut(self, lines: Iterable[Line]) -> bool:
        """Whether a function that one of ``lines`` is in calls stretches, for whichever region it was cut."""
        return any(cut.made is not None and any(_contains(cut.original, line) for line in lines) for cut in self._cut)

    def _add_seams(self, cut: _CutFunction, lines: frozenset[Line], values: frozenset[Line]) -> bool:
        if cut.seams >= lines and cut.values >= values:
            return False
        cut.seams |= lines
        cut.values |= values
        return self._cut_again(cut)

    def _cut_again(self, cut: _CutFunction) -> bool:
        if cut.is_settled:
            return False
        made = cut_code(
            cut.original,
            _numbers(cut.seams),
            self._receiver_of,
            _numbers(cut.values),
            spans=[line.span for line in cut.seams if line.span is not None],
            plain=cut.plain,
            clock=self._clock,
        )
        cut.is_settled = made is None
        if made is None:
            return False
        if self._serving:
            _exchange(cut.functions, cut.made or cut.original, made)
        cut.made = made
        return True

    def _receiver_of(self, stretch: Stretch) -> Any:
        key = (stretch.scope.file, stretch.scope.qualname, *stretch.place)
        found = self._receivers.get(key)
        if found is None:
            found = self._receivers[key] = self._receiver(stretch)
        return found


def _first_line_of(stretch: Stretch) -> Line:
    return Line(stretch.scope.file, stretch.scope.qualname, stretch.lines.start)


def _in(lines: Iterable[Line], cut: _CutFunction) -> frozenset[Line]:
    return frozenset(line for line in lines if _contains(cut.original, line))


def _numbers(lines: Iterable[Line]) -> set[int]:
    return {line.number for line in lines}


def _exchange(functions: Iterable[weakref.ref[FunctionType]], old: CodeType, new: CodeType) -> None:
    for reference in functions:
        function = reference()
        if function is not None and function.__code__ is old:  # or the program has replaced it
            function.__code__ = new


def _contains(code: CodeType, line: Line) -> bool:
    return (code.co_qualname, code.co_filename) == (line.function, line.file) and any(
        number == line.number for _, _, number in code.co_lines()
    )


def _cut_functions(lines: Sequence[Line]) -> list[_CutFunction]:
    """The functions that ``lines`` are in. Those of modules and classes are found by their names, others by a search."""
    found: dict[int, _CutFunction] = {}
    left = set()
    for line in lines:
        functions = [one for one in _named(line) if _contains(one.__code__, line)]
        for one in functions:
            found.setdefault(id(one.__code__), _CutFunction(one.__code__)).functions.append(weakref.ref(one))
        if not functions:
            left.add(line)
    names = {line.function for line in left}
    for one in gc.get_objects() if left else ():
        if type(one) is FunctionType and one.__code__.co_qualname in names:
            if any(_contains(one.__code__, line) for line in left):
                found.setdefault(id(one.__code__), _CutFunction(one.__code__)).functions.append(weakref.ref(one))
    return list(found.values())


def _named(line: Line) -> Iterator[FunctionType]:
    """Functions that modules of the line's file have under its function's qualified name."""
    *classes, name = line.function.split(".")
    for module in list(sys.modules.values()):
        space = getattr(module, "__dict__", None)
        if type(space) is not dict or space.get("__file__") != line.file:
            continue
        for one in classes:
            cls = space.get(one)
            space = type.__dict__["__dict__"].__get__(cls) if isinstance(cls, type) else {}
        value = space.get(name)
        while value is not None:
            if isinstance(value, staticmethod | classmethod):
                value = value.__func__
            if type(value) is FunctionType:
                yield value
            value = getattr(value, "__dict__", {}).get("__wrapped__")


@functools.lru_cache(maxsize=16)
def _compiled(source: str, file: str) -> CodeType | None:
    with no_warnings():  # of the source: Python has given them
        try:
            return compile(source, file, "exec", dont_inherit=True)
        except (SyntaxError, ValueError):
            return None


def cut_code(
    code: CodeType,
    seams: Collection[int],
    receiver: MakeReceiver,
    values: Collection[int] | None = None,
    *,
    spans: Collection[Span] = (),
    plain: Collection[Place] = (),
    is_worth: Callable[[Sequence[ast.stmt]], bool] | None = None,
    clock: FindClock | None = None,
) -> CodeType | None:
    """The code of the same function, with its statements in stretches but for those of the lines ``seams``. So are tests of
    seams, and parts of seams around ``spans`` (in code points), but for those of the lines ``values`` (None: all).
    ``plain``: places of stretches that are not made; ``is_worth``: whether statements are to be a stretch; None: if they
    compute; ``clock``: times the seams. Returns None if its source is not known, or nothing is left to cut."""
    source = "".join(linecache.getlines(code.co_filename))
    whole = _compiled(source, code.co_filename)
    if whole is None or _code_like(whole, code) != code:
        return None
    with no_warnings():
        tree = ast.parse(source, code.co_filename)
    node = _definition(tree, code)
    if node is None:
        return None
    if {one.id for one in own_nodes(node.body) if isinstance(one, ast.Name)} & OF_FRAMES:
        return None
    shared = frozenset(code.co_cellvars + code.co_freevars)
    constants, declared = Constants(code), frozenset(global_names(node.body))
    scope = Scope(code.co_filename, constants, code.co_name, code.co_qualname, declared, shared, future_flags(code))

    def is_seam(statement: ast.stmt | ast.expr) -> bool:
        return any(covers(statement, line) for line in seams)

    def moves(value: ast.expr) -> bool:
        return values is not None and not any(covers(value, line) for line in values)

    lines = source.splitlines()
    in_bytes = [_in_bytes(span, lines) for span in spans]
    cutter = Cutter(scope, is_seam, is_worth or _computes, moves, in_bytes, plain=plain, timed=clock is not None)
    first = 1 if ast.get_docstring(node, clean=False) is not None else 0
    node.body = [*node.body[:first], *cutter.block(node.body[first:], ends_loop=False)]
    if not cutter.stretches and not (plain and cutter.seams):
        return None
    receivers = {stretch.name: receiver(stretch) for stretch in cutter.stretches}
    if clock is not None:
        for seam in cutter.seams:
            receivers |= marks(seam, clock)
    with no_warnings():
        made = _code_like(compile(tree, code.co_filename, "exec", dont_inherit=True), code)
    if made is None or made.co_freevars != code.co_freevars:
        return None
    made = finished(made, receivers, {stretch.name: scope for stretch in cutter.stretches}, scope.constants)
    remember(made, code)
    return made


def _in_bytes(span: Span, lines: Sequence[str]) -> Span:
    """With columns of the encoded source, as the compiler counts them."""

    def column(line: int, character: int) -> int:
        text = lines[line - 1] if line <= len(lines) else ""
        return character if text.isascii() else len(text[:character].encode("utf-8", "surrogatepass"))

    return span._replace(column=column(*span[:2]), end_column=column(*span[2:4]))


def _definition(tree: ast.Module, code: CodeType) -> ast.FunctionDef | None:
    found = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef) and node.name == code.co_name and _first_line(node) == code.co_firstlineno
    ]
    return found[0] if len(found) == 1 else None


def _first_line(node: ast.FunctionDef) -> int:
    return node.decorator_list[0].lineno if node.decorator_list else node.lineno


def _code_like(module: CodeType, code: CodeType) -> CodeType | None:
    """The code in ``module`` of the function that ``code`` is of."""
    todo: Sequence[CodeType] = [module]
    while todo:
        inner = [const for one in todo for const in one.co_consts if isinstance(const, CodeType)]
        for one in inner:
            if (one.co_qualname, one.co_firstlineno) == (code.co_qualname, code.co_firstlineno):
                return one
        todo = inner
    return None


def _computes(statements: Iterable[ast.stmt]) -> bool:
    """Whether statements call something or compute with operators: others are not worth a call of their own."""
    return any(isinstance(node, ast.Call | ast.BinOp | ast.AugAssign) for node in own_nodes(statements))
