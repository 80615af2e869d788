"""Statements that run a whole training step, as a region: the body of a loop, or what is left of a step function. So is
the body of a closure, without the optimizer's step.

If they can't be captured, they are cut where they were refused, and what is left of them that runs both a backward pass and
an optimizer's step is tried again. If nothing is left, the modules and optimizers in them are the regions. Key types:
StepBody, FunctionCut, Steps.
"""

from __future__ import annotations

import ast
import linecache
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from types import CodeType, FunctionType
from typing import Any, Protocol

from magpy_core._compat.cpython.counters import count_also
from magpy_core._compat.cpython.live_objects import LiveObjects
from magpy_core._compat.torch.warning_filters import no_warnings
from magpy_core.runner.rest import Rest
from magpy_core.stretches.cells import Entries, Moved, renewed
from magpy_core.stretches.cut_points import CutPoints, StepCut
from magpy_core.stretches.cutting import Cutter, covers
from magpy_core.stretches.functions import cut_code
from magpy_core.stretches.loops import evaluates, trains
from magpy_core.stretches.names import has_private_names
from magpy_core.stretches.seam_clock import CurrentClock, marks
from magpy_core.stretches.stretch import Stretch, code_of, finished

_OF_THE_OUTSIDE = ("MP103", "MP113")  # whose hints say where the call of the region is
_bodies: LiveObjects[StepBody] = LiveObjects()


class Steps(Protocol):
    """Where regions are made and called. ``rest``: calls that are not looked at; ``observes``: nothing is compiled."""

    rest: Rest

    @property
    def observes(self) -> bool: ...
    def is_outermost(self) -> bool: ...
    def find_or_none(self, find: Callable[[], Any]) -> Any: ...
    def call_function(self, region: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any: ...
    def step_in(self, function: FunctionType, name: str, place: tuple[str, int], parts: Sequence[Any]) -> Any: ...
    def call_in_parts(self, call: Callable[[], Any], parts: list[Any]) -> Any: ...


class _Entry:
    """The region of a step's statements. ``trial`` None: there is none."""

    def __init__(self, stretch: Stretch, trial: Any, clock: CurrentClock) -> None:
        def statement_of(line: int) -> int:
            return next((one.lineno for one in stretch.statements if covers(one, line)), line)

        self.trial, self.cut = trial, None
        if trial is not None:
            points = CutPoints(trial.region, stretch.scope.file, stretch.lines, statement_of)
            self.cut = StepCut(trial, points, clock)


class StepBody:
    """Receives the function of a stretch each time that its statements are to run. ``name``: of the region; ``parts``: the
    regions that it takes the place of; ``begins_in_parts``: in a check, the first time is theirs."""

    def __init__(
        self,
        steps: Callable[[], Steps],
        stretch: Stretch,
        name: Callable[[], str],
        parts: Sequence[Any] = (),
        *,
        begins_in_parts: bool = False,
    ) -> None:
        self._steps, self._stretch = steps, stretch
        self._is_worth = trains if trains(stretch.statements) else evaluates
        self._name, self._parts = name, parts
        self._begins_in_parts = begins_in_parts
        self._entries = Entries(stretch.scope.shared, self._made)
        self._code: CodeType | None = None
        """Of the statements with smaller stretches in them, or of the stretch of a module."""
        self._is_settled = False
        self._clock = CurrentClock()
        _bodies.add(self)
        if stretch.scope.is_module:
            self._code = self._finished(code_of(stretch, ()), Cutter(stretch.scope, lambda one: False, self._is_worth))

    def __matmul__(self, function: FunctionType | None) -> Any:
        if function is None:
            assert self._code is not None
            function = FunctionType(self._code, sys._getframe(1).f_globals)
        steps = self._steps()
        if steps.rest.is_on:
            return steps.rest.call(lambda: self._plain(function))
        if self._is_settled or not steps.is_outermost():
            return self._plain(function)
        if self._begins_in_parts and steps.observes:
            self._begins_in_parts = False
            parts: list[Any] = []
            self._parts = parts
            return steps.call_in_parts(lambda: self._plain(function), parts)
        found = steps.find_or_none(lambda: self._current(function))
        if found is None:
            return self._plain(function)
        moved, entry = found
        region = entry.trial.region
        return moved.call(function, lambda: steps.call_function(region, (), {}))

    def release(self) -> None:
        """Forgets the regions."""
        self._entries.clear()
        self._parts, self._name = (), str
        self._is_settled = True
        self._clock.clock = None

    def _current(self, function: FunctionType) -> tuple[Moved, _Entry] | None:
        """The entry whose region runs the statements now; None: they run in eager mode, or smaller stretches do."""
        found = self._entries.of(function)
        return found if found is not None and self._serves(found[1], function) else None

    def _made(self, moved: Moved) -> _Entry:
        stretch = self._stretch
        count_also(moved.target.__code__, stretch.scope.counted)
        place = (stretch.scope.file, stretch.lines.start)
        return _Entry(stretch, self._steps().step_in(moved.target, self._name(), place, self._parts), self._clock)

    def _serves(self, entry: _Entry, function: FunctionType) -> bool:
        """Whether the entry's region runs the statements; cuts them if it can't."""
        code = None if entry.cut is None else entry.cut.code(lambda lines: self._cut(lines, function), self._blocking)
        self._code = code or self._code
        self._is_settled = entry.cut is None or code is not None or entry.trial.is_refused
        return not self._is_settled

    def _plain(self, function: FunctionType) -> Any:
        if self._code is None:
            return function()
        return renewed(function, self._code, _cells(function, self._code))()

    def _cut(self, seams: Sequence[int], function: FunctionType) -> CodeType | None:
        """The code of the statements without those of the lines ``seams``, if what is left holds a whole step."""
        if has_private_names(self._stretch.statements):  # the function is compiled by itself
            return None
        body, cutter = self._without(seams)
        if not cutter.stretches:
            return None
        with no_warnings():  # of the source: they have been given
            return self._finished(code_of(self._stretch, function.__code__.co_freevars, body), cutter)

    def _without(self, seams: Sequence[int]) -> tuple[list[ast.stmt], Cutter]:
        """The statements cut at the lines ``seams``, and what has cut them: its stretches hold a whole step."""

        def is_seam(statement: ast.stmt | ast.expr) -> bool:
            return any(covers(statement, line) for line in seams)

        cutter = Cutter(self._stretch.scope, is_seam, self._is_worth, timed=True)
        return cutter.block(self._stretch.statements, ends_loop=self._stretch.ends_loop), cutter

    def _blocking(self, obstacles: dict[int, Any]) -> list[Any]:
        """Those that no whole step is left without. The others stand in front of a step or behind it: if they were the
        only ones, they would be left out."""
        blocking = [(line, finding) for line, finding in obstacles.items() if not self._without([line])[1].stretches]
        return [_of_part(finding, self._stretch, line) for line, finding in blocking or obstacles.items()]

    def _finished(self, code: CodeType, cutter: Cutter) -> CodeType:
        inner = cutter.stretches
        receivers: dict[str, Any] = {one.name: StepBody(self._steps, one, self._name, self._parts) for one in inner}
        for seam in cutter.seams:
            receivers |= marks(seam, self._clock)
        scopes = {one.name: one.scope for one in [self._stretch, *inner]}
        return finished(code, receivers, scopes, self._stretch.scope.constants)


def release_bodies() -> None:
    """The program has ended, and its objects must be free: the collector does not see that code holds its bodies."""
    for body in _bodies:
        body.release()


class FunctionCut:
    """Cuts a step function, whose region is ``trial``'s: a part of it that runs a whole step is to be a region in place of
    ``parts``."""

    def __init__(self, code: CodeType, trial: Any, parts: Sequence[Any], steps: Steps) -> None:
        self._code, self._parts, self._steps, self._name = code, parts, steps, str(trial.region.name)
        numbers = [number for _, _, number in code.co_lines() if number is not None]
        points = CutPoints(trial.region, code.co_filename, range(min(numbers), max(numbers) + 1))
        self._clock = CurrentClock()
        self._cut = StepCut(trial, points, self._clock)

    def release(self) -> None:
        """The program has ended."""
        self._clock.clock = None

    def made(self) -> CodeType | None:
        """As `StepCut.code`."""
        code: CodeType | None = self._cut.code(self._without, lambda obstacles: None)
        return code

    def _without(self, seams: Sequence[int]) -> CodeType | None:
        from magpy_core._compat.torch.dynamo import torch_has_compiled  # imports torch: only after the program has
        from magpy_core._compat.torch.dynamo_watch import keep_out

        made = None
        if not torch_has_compiled():
            made = cut_code(self._code, seams, self._receiver, is_worth=trains, clock=self._clock)
        if made is not None:
            keep_out([made])
        return made

    def _receiver(self, stretch: Stretch) -> StepBody:
        steps, name = self._steps, self._name
        return StepBody(lambda: steps, stretch, lambda: name, self._parts)


def _of_part(finding: Any, stretch: Stretch, line: int) -> Any:
    """``finding`` with the hint for statements that are called nowhere."""
    if finding.code not in _OF_THE_OUTSIDE:
        return finding
    places = (place for place in [*finding.path, finding.location] if place.file == stretch.scope.file)
    column = next((place.range.start.character for place in places if place.range.start.line + 1 == line), 0)
    statement = _text_of(stretch.statements, stretch.scope.file, line, column)
    where = "before the forward pass or after the optimizer's step"
    return replace(finding, hint=f"Move `{statement}` (line {line}) {where}.")


def _text_of(statements: Sequence[ast.stmt], file: str, line: int, column: int) -> str:
    """The innermost statement at a place, which may share its line with others; the whole line if there is none."""
    text = linecache.getline(file, line)
    at = len(text[:column].encode())
    here = [
        node
        for statement in statements
        for node in ast.walk(statement)
        if isinstance(node, ast.stmt) and node.lineno == line == node.end_lineno
        if node.col_offset <= at < (node.end_col_offset or 0)
    ]
    if not here:
        return text.strip()
    inner = max(here, key=lambda node: node.col_offset)
    return text.encode()[inner.col_offset : inner.end_col_offset].decode()


def _cells(function: FunctionType, code: CodeType) -> Any:
    """The closure of ``function`` for ``code``, which has no other free variables."""
    cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
    return tuple(cells[name] for name in code.co_freevars) or None
