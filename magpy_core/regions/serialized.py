"""Calls that any thread may make, one after the other. Key type: InTurn."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable


class InTurn:
    """Makes calls one at a time, in order. No thread waits for another, as it would for a lock: the thread that makes a call
    makes those that others add meanwhile, too, and those that are added inside of a call."""

    def __init__(self) -> None:
        self._calls: deque[Callable[[], None]] = deque()
        self._lock = threading.Lock()

    def __call__(self, call: Callable[[], None]) -> None:
        """What ``call`` raises, some thread that makes calls gets; the others are made all the same."""
        self._calls.append(call)
        while self._calls and self._lock.acquire(blocking=False):
            try:
                while self._calls:
                    self._calls.popleft()()
            finally:
                self._lock.release()
