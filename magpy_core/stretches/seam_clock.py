"""How long seams take: the statements, or heads of statements, that are in no stretch because of what was refused there.

Marks around a seam tell the clock when it begins and ends. What stretches in it take is not counted.
Key types: SeamClock, CurrentClock, Seam; key function: marked.
"""

from __future__ import annotations

import ast
import copy
import itertools
import threading
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from statistics import median
from time import perf_counter
from typing import Any

from magpy_core.stretches.marks import mark, passed

_PREFIX = "magpy seam "
_numbers = itertools.count(1)
_KEPT = 256  # times of one seam
_FEWEST = 3  # for a median that one slow call does not make


@dataclass(frozen=True)
class Seam:
    """1-based ``lines`` of ``file``: of a statement, or of the head of one with blocks."""

    file: str
    lines: range
    name: str = field(default_factory=lambda: f"{_PREFIX}{next(_numbers)}", compare=False)

    @property
    def end_name(self) -> str:
        return f"{self.name} end"


class _Times:
    """Of one seam."""

    def __init__(self) -> None:
        self.count = 0
        self.last: deque[float] = deque(maxlen=_KEPT)


class _Running(threading.local):
    def __init__(self) -> None:
        self.seams: list[list[Any]] = []
        """Those that have begun: the seam, when, and the seconds that are not its own."""


class SeamClock:
    """The times of seams. ``runs``: how often what they are in has run, or runs now. ``failed``: takes errors of ours, which
    the program's statements must not see."""

    def __init__(self, runs: Callable[[], int], failed: Callable[[Exception], None]) -> None:
        self._runs, self.failed = runs, failed
        self._first = runs()
        self._times: dict[Seam, _Times] = {}
        self._running = _Running()

    def begin(self, seam: Seam) -> None:
        self._leave(seam)
        self._running.seams.append([seam, perf_counter(), 0.0])

    def end(self, seam: Seam) -> None:
        """Does nothing if it has not begun."""
        now = perf_counter()
        if (left := self._leave(seam)) is None:
            return
        start, others = left
        times = self._times.setdefault(seam, _Times())
        times.count += 1
        times.last.append(now - start - others)
        self.ran_other(now - start)

    def _leave(self, seam: Seam) -> tuple[float, float] | None:
        """Removes a seam that has begun, and those that have begun since, which an exception has left."""
        running = self._running.seams
        for i, (one, start, others) in enumerate(running):
            if one is seam:
                del running[i:]
                return start, others
        return None

    @property
    def is_running(self) -> bool:
        """Whether a seam has begun."""
        return bool(self._running.seams)

    def ran_other(self, seconds: float) -> None:
        """What ran for ``seconds`` is no part of the seam around it."""
        if self._running.seams:
            self._running.seams[-1][2] += seconds

    def seam_at(self, file: str, line: int) -> Seam | None:
        """The seam that has ended at least once at a line."""
        return next((seam for seam in self._times if seam.file == file and line in seam.lines), None)

    def per_run(self, seam: Seam) -> float | None:
        """Seconds that ``seam`` takes each time; None: that is not known."""
        times = self._times[seam]
        if len(times.last) < _FEWEST:
            return None
        return median(times.last) * times.count / max(self._runs() - self._first, 1)


@dataclass
class CurrentClock:
    """Called by marks in code, which the collector of garbage does not look into: it is emptied in the end."""

    clock: SeamClock | None = None

    def __call__(self) -> SeamClock | None:
        return self.clock


class _Begin:
    """Stands in code where a seam begins. ``clock``: of the region that runs."""

    def __init__(self, seam: Seam, clock: Callable[[], SeamClock | None]) -> None:
        self._seam, self._clock = seam, clock

    def __matmul__(self, value: Any) -> Any:
        clock = self._clock()
        if clock is not None:
            try:
                clock.begin(self._seam)
            except Exception as error:
                clock.failed(error)
        return value


class _End(_Begin):
    def __matmul__(self, value: Any) -> Any:
        clock = self._clock()
        if clock is not None:
            try:
                clock.end(self._seam)
            except Exception as error:
                clock.failed(error)
        return value


def marks(seam: Seam, clock: Callable[[], SeamClock | None]) -> dict[str, Any]:
    """What `finished` is to put in the place of the marks' names."""
    return {seam.name: _Begin(seam, clock), seam.end_name: _End(seam, clock)}


def head_of(statement: ast.stmt) -> list[ast.expr] | None:
    """The expressions that a statement with blocks evaluates itself; None: it has no blocks."""
    match statement:
        case ast.If() | ast.While():
            return [statement.test]
        case ast.For():
            return [statement.iter]
        case ast.With():
            return [item.context_expr for item in statement.items]
        case ast.Match():
            return [statement.subject]
    return [] if isinstance(getattr(statement, "body", None), list) else None


def marked(seam: Seam, statement: ast.stmt) -> list[ast.stmt]:
    """``statement``, which may have been changed, between marks. A head ends where a block begins, or when what a loop goes
    over is known; and what a function returns is known when its statement ends."""
    begin, end = mark(seam.name, statement), mark(seam.end_name, statement)
    made = copy.copy(statement)
    if isinstance(made, ast.Return) and made.value is not None:
        made.value = passed(seam.end_name, made.value)
        return [begin, made]
    if isinstance(made, ast.For):  # its body may run often
        made.iter = passed(seam.end_name, made.iter)
        return [begin, made]
    for block in _blocks(made):
        block[:] = [copy.deepcopy(end), *block]
    return [begin, made, end]


def _blocks(made: ast.stmt) -> Iterator[list[ast.stmt]]:
    """Copies of the blocks of ``made``, in their place."""
    for name in ("body", "orelse"):
        block = getattr(made, name, None)
        if isinstance(block, list) and block:
            setattr(made, name, list(block))
            yield getattr(made, name)
    if isinstance(made, ast.Match):
        made.cases = [copy.copy(case) for case in made.cases]
        for case in made.cases:
            case.body = list(case.body)
            yield case.body
