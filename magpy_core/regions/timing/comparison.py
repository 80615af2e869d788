"""Whether compiled code pays: calls with it and in plain Python, by turns, until that is certain. Key type: Trial.

The paths of a region may depend on data, so that its calls take very different times. Of four calls, either the two in the
middle are compiled or the others, at random: so neither kind always gets every second input. The interval is of the ratios
of many such fours. If a call's results take part in autograd, its time is that up to the next call, with the backward pass
and whatever else one call makes different.
"""

from __future__ import annotations

import math
import random
import threading
from collections.abc import Hashable, Sequence

from magpy_core.regions.timing.intervals import speedup_interval

_QUIET = 8  # calls in which nothing new was recorded or compiled, before turns are taken
_LATEST = 100  # the call from which on they are taken all the same
_LOOKS = range(20, 201, 20)  # numbers of calls of either kind after which to look whether it is certain


class Trial:
    """``pays``: whether compiled calls are no slower; None until that is known. ``is_inside``: whether the call that goes on
    is compiled; None: no call goes on. Only calls of the thread that made it count. Times are in seconds."""

    def __init__(self) -> None:
        self.pays: bool | None = None
        self.is_inside: bool | None = None
        self.compiled: list[float] = []
        self.plain: list[float] = []
        self._random = random.Random(0)  # the program's own numbers stay as they are
        self._turns: list[bool] = []  # of the four calls that have begun
        self._calls = self._quiet = 0
        self._state: Hashable = None
        self._begun: tuple[bool, float] | None = None  # the call of a turn that is not timed yet
        self._has_returned = False
        self._thread = threading.get_ident()

    @property
    def is_of_this_thread(self) -> bool:
        return self._thread == threading.get_ident()

    def begin(self, now: float, state: Hashable) -> bool:
        """A call begins at ``now``. ``state``: of the captures; None while some are being compiled. Returns whether the call
        is compiled."""
        self._end(now)
        self._has_returned = False
        if self.pays is not None:
            return self.pays
        self._calls += 1
        is_new, self._state = state != self._state, state
        if state is None or (is_new and self._calls < _LATEST):
            self._calls, self._quiet = 0 if state is None else self._calls, 0
            self._forget()  # other code was timed
            return True
        self._quiet += 1
        if self._quiet < _QUIET and self._calls < _LATEST:
            return True
        if not self._turns:
            first = self._random.random() < 0.5
            self._turns = [first, not first, not first, first]
        is_compiled = self._turns.pop()
        self._begun = is_compiled, now
        return is_compiled

    def _forget(self) -> None:
        self.plain, self.compiled, self._turns = [], [], []

    def returned(self, now: float, *, has_history: bool) -> None:
        """The call that has begun returned at ``now``."""
        self._has_returned = True
        if not has_history:
            self._end(now)

    def _end(self, now: float) -> None:
        if self._begun is None:
            return
        (is_compiled, start), self._begun = self._begun, None
        if not self._has_returned:  # it raised: it is the next call's turn
            self._turns.append(is_compiled)
            return
        (self.compiled if is_compiled else self.plain).append(now - start)
        if not self._turns and len(self.plain) in _LOOKS:
            self._look()

    def _look(self) -> None:
        plain, compiled = _by_two(self.plain), _by_two(self.compiled)
        interval = speedup_interval(plain, compiled)
        if interval is None:
            return
        if interval[0] > 1.0 or interval[1] < 1.0:
            self.pays = interval[0] > 1.0
        elif len(self.plain) == _LOOKS[-1]:
            self.pays = _mean_log_ratio(plain, compiled) > 0.0


def _by_two(timings: Sequence[float]) -> list[float]:
    return [first + second for first, second in zip(timings[::2], timings[1::2], strict=True)]


def _mean_log_ratio(plain: Sequence[float], compiled: Sequence[float]) -> float:
    """Without a tenth at either end. Where calls take one of two times, ratios lie on both sides of the true one, and any in
    between could be their median."""
    ratios = sorted(math.log(p / c) for p, c in zip(plain, compiled, strict=True) if p > 0 and c > 0)
    cut = len(ratios) // 10
    kept = ratios[cut : len(ratios) - cut]
    return math.fsum(kept) / len(kept) if kept else 0.0
