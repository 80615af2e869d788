"""Calls of a region that wait for its compiled code: most run as plain Python without checking guards. Key type: Waiting.

A call that a capture fits, but whose compiled code is not there yet, has checked the capture's guards in vain. Once that has
happened often, most calls skip the check, so that waiting costs almost nothing; a call with another shape or path is then
captured a few calls later.
"""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from magpy_core.capture.build import Capture

_PATIENCE = 32  # calls that check in vain before any call skips the check
_SHARE = 0.005  # of a plain call's time, for checking
_LONGEST = 64  # calls without a check


class Waiting:
    """Which calls of one region skip the guards."""

    def __init__(self) -> None:
        self._in_vain = 0
        self._left = 0
        self._capture: weakref.ref[Capture] | None = None

    def capture(self) -> Capture | None:
        """The capture that this call would wait for, if it is to run as plain Python without checking guards."""
        if self._left <= 0:
            return None
        self._left -= 1
        return self._capture() if self._capture is not None else None

    def checked_in_vain(self, capture: Capture, check: float, call: float) -> None:
        """``capture`` fits, but its code is not ready: checking took ``check`` seconds, the plain call ``call``."""
        self._in_vain += 1
        self._capture = weakref.ref(capture)
        if self._in_vain > _PATIENCE:
            self._left = min(_LONGEST, int(check / (_SHARE * max(call, 1e-9))))

    def restart(self) -> None:
        """Compiled code has served, or something was captured."""
        self._in_vain = self._left = 0
