"""Whether compiled code is worth looking at the program's calls, where those are short. Key type: Watching.

Windows of calls in which compiled code serves alternate with windows of as many calls in plain Python that nothing looks at.
Calls and steps timed by turns don't show this: all of them are looked at.
"""

from __future__ import annotations

from collections.abc import Hashable
from statistics import median

from magpy_core.regions.timing.intervals import speedup_interval

_LOOKS = (6, 8, 12, 16, 24)  # numbers of pairs after which to look whether it is certain


class Watching:
    """``pays``: None until it is known. ``lost``: plain and compiled seconds of the last code that did not pay. All are of a
    call, from its predecessor on, in windows that were neighbours."""

    def __init__(self) -> None:
        self.pays: bool | None = None
        self.lost: tuple[float, float] | None = None
        self.plain: list[float] = []
        self.compiled: list[float] = []
        self._state: Hashable = None

    def is_wanted(self, state: Hashable) -> bool:
        """Whether the window that has just ended is to be compared. ``state``: of the captures, which tells whether other
        code runs than before."""
        if state != self._state:
            self._state, self.pays, self.plain, self.compiled = state, None, [], []
            return False
        return self.pays is None

    def add(self, compiled: float, plain: float) -> None:
        self.compiled.append(compiled)
        self.plain.append(plain)
        if len(self.plain) not in _LOOKS:
            return
        interval = speedup_interval(self.plain, self.compiled)
        if interval is not None and not interval[0] <= 1.0 <= interval[1]:
            self.pays = interval[0] > 1.0
        elif len(self.plain) == _LOOKS[-1]:
            self.pays = self.ratio <= 1.0
        if self.pays is False:
            self.lost = median(self.plain), median(self.compiled)

    @property
    def ratio(self) -> float:
        """Compiled over plain."""
        return median(c / p for c, p in zip(self.compiled, self.plain, strict=True))
