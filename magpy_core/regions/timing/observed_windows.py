"""Whether compiled code is worth observing the program's calls, where those are short. Key type: ObservedWindows.

Windows of calls in which compiled code serves alternate with windows of as many calls in eager mode that nothing observes.
Alternating calls and steps don't show this: all of them are observed.
"""

from __future__ import annotations

from collections.abc import Hashable

from magpy_core.regions.timing.comparison import Comparison

_LOOKS = (6, 8, 12, 16, 24)  # numbers of pairs after which to look whether it is certain


class ObservedWindows:
    """``compared``: seconds of a call, from its predecessor on, in windows that were neighbours. ``lost``: eager and
    compiled seconds of the last code that did not pay."""

    def __init__(self) -> None:
        self.compared = Comparison(_LOOKS)
        self.lost: tuple[float, float] | None = None
        self._state: Hashable = None

    def next_window(self, state: Hashable) -> bool:
        """A window has ended. ``state``: of the captures, which tells whether other code runs than before. Returns whether
        this window is to be compared with its neighbour."""
        if state != self._state:
            self._state = state
            self.compared.restart()
            return False
        return self.compared.pays is None

    def add(self, compiled: float, eager: float) -> None:
        self.compared.compiled.append(compiled)
        self.compared.eager.append(eager)
        self.compared.look()
        if self.compared.pays is False:
            self.lost = self.compared.medians(1)
