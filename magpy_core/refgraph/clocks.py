"""Clocks: functions of ``time`` whose result is a number. A compiled call reads the clock where the program does: before the
graph, or after it. Key type: ClockRead. Key function: is_clock.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

_CLOCKS: frozenset[Any] = frozenset({
    time.time, time.monotonic, time.perf_counter, time.process_time, time.thread_time,
    time.time_ns, time.monotonic_ns, time.perf_counter_ns, time.process_time_ns, time.thread_time_ns,
})  # fmt: skip


@dataclass(frozen=True, eq=False)
class ClockRead:
    """One read of a ``clock`` after the graph, or after its operations up to ``after``, a node."""

    clock: Callable[[], Any]
    after: Any
    site: Any


def is_clock(fn: Any) -> bool:
    """Whether this function reads a clock."""
    return type(fn) is type(time.time) and fn in _CLOCKS
