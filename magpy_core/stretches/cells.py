"""Runs the function of a stretch on variables of its own, which do not change from one entry of the frame to the next.

A frame makes new cells for its variables each time it is entered, and a function for its stretches. What is captured is
one function, whose cells are the same at each call: the frame's values move into them before a call, and back after it.
Cells that closures of the program may hold are used as they are. Key types: Moved, Entries.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterator
from types import CellType, CodeType, FunctionType
from typing import Any, Generic, TypeVar

_MOST = 3  # entries of a frame whose variables are shared with closures: each is captured anew
Served = TypeVar("Served")


class Moved:
    """The function of one stretch. ``function``: as the frame made it; ``shared``: variables that closures may hold."""

    def __init__(self, function: FunctionType, shared: Collection[str]) -> None:
        code, cells = function.__code__, function.__closure__ or ()
        self._real = tuple(cell for name, cell in zip(code.co_freevars, cells, strict=True) if name in shared)
        own = tuple(cell if name in shared else CellType() for name, cell in zip(code.co_freevars, cells, strict=True))
        self._lock = threading.Lock()
        self._fixed = [(i, own[i]) for i, name in enumerate(code.co_freevars) if name not in shared]
        self.target = renewed(function, code, own)

    def fits(self, function: FunctionType, shared: Collection[str]) -> bool:
        """Whether the function of another entry of the frame has the same shared cells."""
        if not self._real:
            return True
        cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
        return tuple(map(id, self._real)) == tuple(id(cell) for name, cell in cells if name in shared)

    def call(self, function: FunctionType, run: Callable[[], Any]) -> Any:
        """What ``run``, which calls the target, returns; meanwhile the variables are in the target's cells. If those of
        another thread are there now, the function itself is called."""
        if not self._lock.acquire(False):
            return function()
        closure = function.__closure__ or ()
        for i, cell in self._fixed:
            _move(closure[i], cell)
        try:
            return run()
        finally:
            for i, cell in self._fixed:
                _move(cell, closure[i])
            self._lock.release()


class Entries(Generic[Served]):
    """What serves a stretch, by the entries of its frame that have the same ``shared`` variables. ``make``: a new one."""

    def __init__(self, shared: Collection[str], make: Callable[[Moved], Served]) -> None:
        self._shared, self._make = shared, make
        self._made: list[tuple[Moved, Served]] = []

    def __iter__(self) -> Iterator[Served]:
        return (served for _, served in self._made)

    def of(self, function: FunctionType) -> tuple[Moved, Served] | None:
        """For the function that the frame has made; None: there are too many."""
        for found in self._made:
            if found[0].fits(function, self._shared):
                return found
        if len(self._made) == _MOST:
            return None
        moved = Moved(function, self._shared)
        self._made.append((moved, self._make(moved)))
        return self._made[-1]

    def clear(self) -> None:
        self._made.clear()


def _move(old: CellType, new: CellType) -> None:
    """Moves the value, so that it does not live longer than in the frame alone."""
    try:
        new.cell_contents = old.cell_contents
    except ValueError:  # unbound
        _unbind(new)
    else:
        del old.cell_contents


def _unbind(cell: CellType) -> None:
    try:
        del cell.cell_contents
    except ValueError:
        return


def renewed(function: FunctionType, code: CodeType, closure: tuple[CellType, ...] | None) -> FunctionType:
    """``function`` with another code and closure."""
    made = FunctionType(code, function.__globals__, code.co_name, None, closure)
    made.__qualname__, made.__module__ = code.co_qualname, function.__module__
    return made
