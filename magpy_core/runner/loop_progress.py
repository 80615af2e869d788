"""How far the program's training loops have come, and so how long it will at least go on. Key types: LoopProgress, Loop.

Marks in the loops (`stretches/loops.py`) tell when one begins, what it goes over, and when an iteration begins. Of what it
goes over, only Python's own sequences and progress bars are asked for a length: asking another object would run the
program's code. If a loop begins again, as in each epoch, it is taken to be as long as before.
"""

from __future__ import annotations

import gc
import operator
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from types import FrameType
from typing import Any

from magpy_core.limits import LIMITS
from magpy_core.stretches.loops import TrainingLoop

_SIZED = (range, list, tuple, dict, set, frozenset, str, bytes, deque)
_EMPTY: tuple[Iterable[Any], ...] = (range(0), range(2**70), [], (), {}, {}.values(), {}.items(), set(), "")
_ITERATORS = tuple(type(iter(one)) for one in _EMPTY)
_COMBINED = (enumerate, zip)


def known_length(iterable: Any) -> int | None:
    """How many iterations there are; None: that is not known without running code of the program's."""
    kind = type(iterable)
    if kind in _SIZED:
        return len(iterable)
    if kind in _ITERATORS:
        return operator.length_hint(iterable)
    if kind in _COMBINED:
        held = gc.get_referents(iterable)
        held += [one for several in held if type(several) is tuple for one in several]
        inside = (known_length(one) for one in held if type(one) in (*_ITERATORS, *_COMBINED))
        return min((length for length in inside if length is not None), default=None)
    bar = getattr(sys.modules.get("tqdm"), "tqdm", None)
    if bar is not None and isinstance(bar, type) and bar in kind.__mro__:
        total = vars(iterable).get("total")
        return total if type(total) is int else None
    return None


class Loop:
    """One loop in the source. Times are the clock's, in seconds: of its beginning, its second iteration and its current one,
    which is number ``done``, from 1. ``frames``: those that ran when it began."""

    def __init__(self, loop: TrainingLoop) -> None:
        self.loop = loop
        self.length: int | None = None
        self.frames: list[tuple[int, Any]] = []
        self.done = 0
        self.began = self.second = self.current = 0.0

    def begins(self, length: int | None, frames: list[tuple[int, Any]], now: float) -> None:
        """It goes over something of this ``length``; if that is not known, it is what it was the last time."""
        self.length = length if length is not None else (self.done or None)
        self.frames, self.done, self.began, self.current = frames, 0, now, now

    def iterates(self, now: float) -> None:
        self.done += 1
        self.current = now
        if self.done == 2:
            self.second = now

    def goes_on(self, frames: list[tuple[int, Any]], loop: TrainingLoop) -> bool:
        """Whether it is still running when ``loop`` begins in ``frames``."""
        here = self.frames[0]
        return here in frames and (here != frames[0] or self.loop in loop.around)

    def left(self, now: float, inside: float) -> float:
        """The seconds that it goes on at least. ``inside``: those of the loops inside of it. The first iteration counts only
        as long as there is no other: programs warm up in it."""
        if self.length is None or not self.done:
            return inside
        each = now - self.current + inside
        if self.done > 2:
            each = (self.current - self.second) / (self.done - 2)
        rest = max(inside, each - (now - self.current), 0.0)
        return rest + max(self.length - self.done, 0) * each


class LoopProgress:
    """Of one thread's loops: the first one's. ``failed``: takes errors of ours. ``now``: the clock, in seconds."""

    def __init__(self, failed: Callable[[str, Exception], None], now: Callable[[], float] = time.monotonic) -> None:
        self._failed, self._now = failed, now
        self._thread = 0
        self._next = 0.0
        self._running: list[Loop] = []

    def watch(self, loop: TrainingLoop) -> tuple[Any, Any]:
        """What the loop's marks tell."""
        watched = Loop(loop)
        return _Begins(self, watched), _Iterates(self, watched)

    def begins(self, loop: Loop, iterable: Any) -> None:
        me = threading.get_ident()
        self._thread = self._thread or me
        if self._thread != me:
            return
        frames = _frames()
        self._running = [one for one in self._running if one is not loop and one.goes_on(frames, loop.loop)]
        self._running.append(loop)
        loop.begins(known_length(iterable), frames, self._now())

    def iterates(self, loop: Loop) -> None:
        if self._thread == threading.get_ident():
            loop.iterates(self._now())

    def left_if_due(self) -> float | None:
        """As `left`; None if that was asked a moment ago."""
        now = self._now()
        if now < self._next:
            return None
        self._next = now + LIMITS.look_ahead_interval
        return self.left()

    def left(self) -> float:
        """The seconds that the program goes on at least, as far as its loops tell."""
        now, left, began = self._now(), 0.0, None
        for loop in reversed(self._running):
            if began is not None and began < loop.current:
                left = 0.0  # what was inside has ended
            left, began = loop.left(now, left), loop.began
        return left

    def failed(self, error: Exception) -> None:
        self._failed("MagPy could not follow the program's loops", error)

    def release(self) -> None:
        """The program has ended."""
        self._running = []


class _Begins:
    """Stands in the program's code."""

    def __init__(self, progress: LoopProgress, loop: Loop) -> None:
        self._progress, self._loop = progress, loop

    def __matmul__(self, given: Any) -> Any:
        try:
            self._progress.begins(self._loop, given[0])
        except Exception as error:  # it must never take the program down
            self._progress.failed(error)
        return given


class _Iterates(_Begins):
    def __matmul__(self, given: Any) -> Any:
        try:
            self._progress.iterates(self._loop)
        except Exception as error:
            self._progress.failed(error)
        return given


def _frames() -> list[tuple[int, Any]]:
    """The program's frames, innermost first, by identity and code: an address may be another frame's later."""
    frame: FrameType | None = sys._getframe(3)
    found = []
    while frame is not None:
        found.append((id(frame), frame.f_code))
        frame = frame.f_back
    return found
