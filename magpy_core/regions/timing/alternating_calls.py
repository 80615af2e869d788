"""Single calls, compiled and in eager mode by turns, until it is certain which is faster. Key type: AlternatingCalls.

The paths of a region may depend on data, so that its calls take very different times. Of four calls, either the two in the
middle are compiled or the others, at random: so neither kind always gets every second input. The interval is of the ratios
of many such fours. If a call's results take part in autograd, its time is that up to the next call, with the backward pass
and whatever else one call makes different.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Hashable

from magpy_core.limits import LIMITS
from magpy_core.regions.timing.comparison import Comparison

_LOOKS = range(20, 201, 20)  # numbers of calls of either kind after which to look whether it is certain


class AlternatingCalls:
    """``compared``: the calls that were timed, and the verdict. ``is_inside``: whether the call that goes on is compiled;
    None: no call goes on. Only calls of the thread that made it count."""

    def __init__(self) -> None:
        self.compared = Comparison(_LOOKS, grouped=2)
        self.is_inside: bool | None = None
        self._random = random.Random(0)  # the program's own numbers stay as they are
        self._turns: list[bool] = []  # of the four calls that have begun
        self._calls = self._steady = 0
        self._state: Hashable = None
        self._begun: tuple[bool, float] | None = None  # the call of a turn that is not timed yet
        self._has_returned = False
        self._thread = threading.get_ident()

    @property
    def pays(self) -> bool | None:
        """Whether compiled calls are no slower; None until that is known."""
        return self.compared.pays

    @property
    def is_of_this_thread(self) -> bool:
        return self._thread == threading.get_ident()

    def begin(self, now: float, state: Hashable) -> bool:
        """A call begins at ``now`` (seconds). ``state``: of the captures; None while some are being compiled. Returns
        whether the call is compiled."""
        self._end(now)
        self._has_returned = False
        if self.pays is not None:
            return self.pays
        self._calls += 1
        is_new, self._state = state != self._state, state
        if state is None or (is_new and self._calls < LIMITS.latest_alternation):
            self._calls, self._steady = 0 if state is None else self._calls, 0
            self.compared.restart()  # other code was timed
            self._turns = []
            return True
        self._steady += 1
        if self._steady < LIMITS.steady_calls and self._calls < LIMITS.latest_alternation:
            return True
        if not self._turns:
            first = self._random.random() < 0.5
            self._turns = [first, not first, not first, first]
        is_compiled = self._turns.pop()
        self._begun = is_compiled, now
        return is_compiled

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
        (self.compared.compiled if is_compiled else self.compared.eager).append(now - start)
        if not self._turns:
            self.compared.look()
