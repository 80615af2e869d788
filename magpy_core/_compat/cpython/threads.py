"""The processor time of other threads. Key functions: processor_times, leave_out_running."""

from __future__ import annotations

import sys
import threading
import time
from itertools import chain, starmap

_left_out: set[int] = set()  # the clocks of threads


def processor_times() -> dict[int, int] | None:
    """Nanoseconds of processor time of each other thread with a Python frame, by its clock; None if unavailable."""
    if sys.platform == "darwin" or sys.platform == "win32":
        return {} if len(sys._current_frames()) == 1 else None
    try:
        return {clock: time.clock_gettime_ns(clock) for clock in _clocks() - _left_out}
    except OSError:  # a thread has ended
        return None


def leave_out_running() -> None:
    """The other threads that run now are not the program's, but of what started it: their time does not count."""
    if sys.platform != "darwin" and sys.platform != "win32":
        _left_out.update(_clocks())


def _clocks() -> set[int]:
    # A thread must not end between the two calls, or its id would point to freed memory: no bytecode runs in between.
    clocks = set(map(time.pthread_getcpuclockid, chain.from_iterable(starmap(sys._current_frames, ((),)))))
    clocks.discard(time.pthread_getcpuclockid(threading.get_ident()))
    return clocks
