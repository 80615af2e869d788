"""What recordings, and loading compiled code, cost a program, whose calls wait for them. Key type: Overhead.

The cost stays in proportion to the time that the program has run, so that a program that keeps changing (another path or
value in most calls) is hardly slower than in plain Python.
"""

from __future__ import annotations

import time

_UNNOTICED_S = 1.5
_SHARE = 0.05  # of the time the program has run


class Overhead:
    """The seconds spent, of all regions of a session."""

    def __init__(self) -> None:
        self._began = time.monotonic()
        self.spent = 0.0

    def add(self, seconds: float) -> None:
        self.spent += seconds

    def affords(self, seconds: float = 0.0) -> bool:
        """Whether a program that ends right after spending ``seconds`` would hardly have lost; later it may afford them, if
        not now."""
        return self.spent + seconds <= _UNNOTICED_S + _SHARE * (time.monotonic() - self._began)
