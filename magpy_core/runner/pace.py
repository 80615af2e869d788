"""How fast the program's steps follow each other, and what they have gained, for who watches the run. Key type: Pace.

The program waits while a message is made, so messages are rare: most steps read the clock, which the caller has done.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from magpy_core.runner.protocol import Message

if TYPE_CHECKING:
    from magpy_core.findings import StepReport

_INTERVAL = 0.5
_WINDOW = 5.0  # seconds that the rate is of
_COST = 0.01  # of the program's time, at most, for messages


class _Mark(NamedTuple):
    at: float
    steps: int
    counted: int  # in the report, which counts two steps in one call as one
    compiled: int


class Pace:
    """Sends ``progress`` messages from the ends of steps."""

    def __init__(self, send: Callable[[Message], None], interval: float = _INTERVAL) -> None:
        self._send = send
        self._interval = interval
        self._next = 0.0
        self._marks: deque[_Mark] = deque()

    def stepped(self, n: int, now: float, report: Callable[[], StepReport | None]) -> None:
        """Step ``n`` has ended; ``now`` is the monotonic clock's time. ``report`` is called if it is time for a message."""
        if now >= self._next:
            self._message(n, now, report())
            spent = time.monotonic() - now
            self._next = now + max(self._interval, spent / _COST)

    def finish(self, n: int, report: StepReport | None) -> None:
        """The program has ended after ``n`` steps."""
        if n:
            self._message(n, time.monotonic(), report)

    def _message(self, n: int, now: float, step: StepReport | None) -> None:
        counted, compiled = (step.count, step.compiled) if step is not None else (n, 0)
        self._marks.append(_Mark(now, n, counted, compiled))
        while len(self._marks) > 2 and self._marks[1].at < now - _WINDOW:
            self._marks.popleft()
        first = self._marks[0]
        rate = round((n - first.steps) / (now - first.at), 4) if n > first.steps and now > first.at else None
        share = (compiled - first.compiled) / (counted - first.counted) if counted > first.counted else 0.0
        shown = None if step is None else replace(step, timeline=[]).to_json()
        self._send({"type": "progress", "rate": rate, "compiled": round(share, 4), "step": shown})
