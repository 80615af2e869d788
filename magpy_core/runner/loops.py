"""Training loops that stand in a function or in the script itself: the body of each is a step function.

If it can't be captured, it is cut where it was refused, and what is left of it that runs both a backward pass and an
optimizer's step is tried again. If nothing is left, its modules and optimizers are the regions. Key types: Loops, LoopBody.
"""

from __future__ import annotations

import ast
import linecache
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from types import CodeType, FunctionType
from typing import TYPE_CHECKING, Any

from magpy_core._compat.torch.warning_filters import no_warnings
from magpy_core.stretches.cells import Moved, renewed
from magpy_core.stretches.cutting import Cutter, covers
from magpy_core.stretches.loops import cut_loops, may_train, trains
from magpy_core.stretches.originals import cut_codes, restore
from magpy_core.stretches.stretch import Stretch, code_of, finished

if TYPE_CHECKING:
    from magpy_core.runner.discovery import Discovery

_ENTRIES = 3  # of a frame whose variables are shared with closures: each is captured anew
_LIFETIMES = "MP110"  # of objects with finalizers, which a recording of a part would keep alive
_OF_THE_OUTSIDE = ("MP103", "MP113")  # whose hints say where the call of the region is
_VARYING = 3  # captures because of one statement, which is worth no more of them


class Loops:
    """Compiles modules so that the bodies of their training loops can be regions."""

    def __init__(self, discovery: Callable[[], Discovery]) -> None:
        self._discovery = discovery
        self._has_torch = False

    @property
    def discovery(self) -> Discovery:
        return self._discovery()

    def cut(self, tree: ast.Module, source: bytes, filename: str) -> Callable[[CodeType], CodeType] | None:
        """Cuts the loops in ``tree``. Returns what is to be done with its compiled code; None: there are none."""
        if not may_train(source):
            return None
        with no_warnings():  # of the source: they are given when ``tree`` is compiled
            code = compile(source, filename, "exec", dont_inherit=True)
        finish = cut_loops(tree, filename, code, lambda stretch: LoopBody(self, stretch))[1]

        def finish_and_keep(compiled: CodeType) -> CodeType:
            made = finish(compiled)
            if self._has_torch:
                self._keep_out_of_dynamo()
            return made

        return finish_and_keep

    def torch_was_imported(self) -> None:
        """From now on, the program may use torch.compile, which can't read what is cut."""
        from magpy_core._compat.torch.dynamo_watch import COMPILER, before_first_frame
        from magpy_core.runner.discovery import ImportHook

        self._has_torch = True
        self._keep_out_of_dynamo()
        ImportHook(lambda: before_first_frame(restore), COMPILER).install()

    @staticmethod
    def _keep_out_of_dynamo() -> None:
        if codes := cut_codes():
            from magpy_core._compat.torch.dynamo_watch import keep_out

            keep_out(codes)


class _Entry:
    """The region of a loop's body, for the entries of its frame that have the same shared variables."""

    def __init__(self, loops: Loops, stretch: Stretch, name: str, function: FunctionType) -> None:
        self._stretch = stretch
        self.moved = Moved(function, stretch.scope.shared)
        self.trial = loops.discovery.step_of_loop(self.moved.target, name, (stretch.scope.file, stretch.lines.start))
        self._recompiles = 0

    @property
    def is_refused(self) -> bool:
        return self.trial is None or self.trial.is_refused

    def obstacles(self) -> dict[int, Any]:
        """What the region was refused for: the first finding of each line of these statements."""
        found: dict[int, Any] = {}
        obstacles = self.trial.region.log.obstacles if self.trial is not None else []
        for finding in obstacles:
            places = [*finding.path, finding.location]
            numbers = (place.range.start.line + 1 for place in places if place.file == self._stretch.scope.file)
            line = next((number for number in numbers if number in self._stretch.lines), None)
            if line is not None:
                found.setdefault(line, finding)
        return found

    def varying_lines(self) -> list[int]:
        """The lines of statements because of which the region was captured again and again, if that is news."""
        region = self.trial.region
        if len(region.recompiles) == self._recompiles:
            return []
        self._recompiles = len(region.recompiles)
        at: Counter[int] = Counter()
        for place, number in region.log.varied.items():
            line = place.range.start.line + 1 if place is not None else 0
            if place is not None and place.file == self._stretch.scope.file and line in self._stretch.lines:
                at.update({one.lineno: number for one in self._stretch.statements if covers(one, line)})
        return [line for line, number in at.items() if number >= _VARYING]


class LoopBody:
    """Receives the function of a stretch each time that its statements are to run."""

    def __init__(self, loops: Loops, stretch: Stretch, name: str = "") -> None:
        self._loops, self._stretch = loops, stretch
        self._name = name
        self._entries: list[_Entry] = []
        self._code: CodeType | None = None
        """Of the statements with smaller stretches in them, or of the stretch of a module."""
        self._is_settled = False
        if stretch.scope.is_module:
            self._code = self._finished(code_of(stretch, ()), [])

    def __matmul__(self, function: FunctionType | None) -> Any:
        if function is None:
            assert self._code is not None
            function = FunctionType(self._code, sys._getframe(1).f_globals)
        discovery = self._loops.discovery
        if self._is_settled or not discovery.is_outermost():
            return self._plain(function)
        entry = discovery.find_or_none(lambda: self._current(function))
        if entry is None:
            return self._plain(function)
        region = entry.trial.region
        return entry.moved.call(function, lambda: discovery.call_function(region, (), {}))

    def _current(self, function: FunctionType) -> _Entry | None:
        """The entry whose region runs the statements now; None: they run in plain Python, or smaller stretches do."""
        entry = self._entry(function)
        return None if entry is None or self._is_to_be_cut(entry, function) else entry

    def _is_to_be_cut(self, entry: _Entry, function: FunctionType) -> bool:
        if entry.is_refused:
            self._is_settled = True
            obstacles = entry.obstacles()
            lifetimes = any(finding.code == _LIFETIMES for finding in obstacles.values())
            if not lifetimes and self._cut(list(obstacles), function):
                entry.trial.end()
            elif entry.trial is not None:
                entry.trial.give_up([_of_loop(finding, self._stretch, line) for line, finding in self._blocking(obstacles)])
        elif (lines := entry.varying_lines()) and self._cut(lines, function):
            self._is_settled = True
            entry.trial.end()
        return self._is_settled

    def _plain(self, function: FunctionType) -> Any:
        if self._code is None:
            return function()
        return renewed(function, self._code, _cells(function, self._code))()

    def _entry(self, function: FunctionType) -> _Entry | None:
        shared = self._stretch.scope.shared
        found = next((entry for entry in self._entries if entry.moved.fits(function, shared)), None)
        if found is None and len(self._entries) < _ENTRIES:
            self._name = self._name or self._loops.discovery.name_of_loop(self._stretch.scope.qualname)
            found = _Entry(self._loops, self._stretch, self._name, function)
            self._entries.append(found)
        return found

    def _cut(self, seams: Sequence[int], function: FunctionType) -> bool:
        """From now on, the statements run without those of the lines ``seams``, if what is left holds a whole step."""
        body, made = self._without(seams)
        if made:
            with no_warnings():  # of the source: they have been given
                code = code_of(self._stretch, function.__code__.co_freevars, body)
                self._code = self._finished(code, made)
        return bool(made)

    def _without(self, seams: Sequence[int]) -> tuple[list[ast.stmt], list[Stretch]]:
        """The statements cut at the lines ``seams``, and the stretches that hold a whole step."""

        def is_seam(statement: ast.stmt) -> bool:
            return any(covers(statement, line) for line in seams)

        cutter = Cutter(self._stretch.scope, is_seam, trains)
        body = cutter.block(self._stretch.statements, ends_loop=self._stretch.ends_loop) if seams else []
        return body, cutter.stretches

    def _blocking(self, obstacles: dict[int, Any]) -> list[tuple[int, Any]]:
        """Those that no whole step is left without. The others stand in front of a step or behind it: if they were the
        only ones, they would be left out."""
        blocking = [(line, finding) for line, finding in obstacles.items() if not self._without([line])[1]]
        return blocking or list(obstacles.items())

    def _finished(self, code: CodeType, inner: list[Stretch]) -> CodeType:
        receivers = {one.name: LoopBody(self._loops, one, self._name) for one in inner}
        scopes = {one.name: one.scope for one in [self._stretch, *inner]}
        return finished(code, receivers, scopes, self._stretch.scope.constants)


def _of_loop(finding: Any, stretch: Stretch, line: int) -> Any:
    """``finding`` with the hint for a loop, whose body is called nowhere."""
    if finding.code not in _OF_THE_OUTSIDE:
        return finding
    statement = linecache.getline(stretch.scope.file, line).strip()
    where = "in front of the forward pass or behind the optimizer's step"
    return replace(finding, hint=f"Move `{statement}` (line {line}) {where}.")


def _cells(function: FunctionType, code: CodeType) -> Any:
    """The closure of ``function`` for ``code``, which has no other free variables."""
    cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
    return tuple(cells[name] for name in code.co_freevars) or None
