"""Calls that check guards in vain, and are to do so less often. Key type: GuardBackoff.

A call that a capture fits, but whose compiled code is still on the way, runs in eager mode; so does a call that no capture
fits, if the program can't afford a recording now. Once that has happened often in a row, most calls skip the check, so that
waiting costs almost nothing. A call with another shape or path is then captured a few calls later.
"""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING

from magpy_core.limits import LIMITS

if TYPE_CHECKING:
    from magpy_core.capture.build import Capture


class GuardBackoff:
    """Which calls of one region skip the guards."""

    def __init__(self) -> None:
        self._wasted = 0
        self._left = 0
        self._hits = 0
        self._checked = self._missed = 0
        self._fitted: weakref.ref[Capture] | None = None
        self._is_repeated = False
        self.wasted_seconds = 0.0  # of compiling code that has never served a call

    def skip(self) -> bool:
        """A call begins. Whether it is to run in eager mode without checking guards."""
        if self._left <= 0:
            return False
        self._left -= 1
        return True

    def awaited(self) -> Capture | None:
        """The capture that such a call would probably be served by, if it were compiled: the one that has fitted the last
        two calls that were checked. One that fits few calls would seem important whenever one of them is checked."""
        return self._fitted() if self._fitted is not None and self._is_repeated else None

    @property
    def fits_few(self) -> bool:
        """Whether captures fit hardly any call, as when each has another shape: compiling such a capture would only hold up
        one with sizes that vary."""
        return self._checked >= LIMITS.few_checks and self._missed > (1 - LIMITS.few_fit) * self._checked

    def wasted_check(self, capture: Capture | None, hits: int, check: float, call: float) -> None:
        """Checking took ``check`` seconds, and the plain call ``call``. ``capture`` fits, but its code is not ready; None if
        no capture fits. ``hits``: the calls that captures have served so far."""
        self._wasted = self._wasted + 1 if hits == self._hits else 1
        self._checked += 1
        self._missed += capture is None
        self._hits = hits
        self._is_repeated = capture is not None and self._fitted is not None and self._fitted() is capture
        self._fitted = weakref.ref(capture) if capture is not None else None
        if self._wasted > LIMITS.check_patience:
            self._left = min(LIMITS.longest_unchecked, int(check / (LIMITS.check_share * max(call, 1e-9))))

    def restart(self) -> None:
        """Compiled code has served, or something was captured."""
        self._wasted = self._left = self._checked = self._missed = 0
