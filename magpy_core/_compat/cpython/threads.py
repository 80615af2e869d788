"""The processor time of other threads. Key function: processor_times."""

from __future__ import annotations

import sys
import threading
import time
from itertools import chain, starmap


def processor_times() -> dict[int, int] | None:
    """Nanoseconds of processor time of each other thread with a Python frame, by its clock; None if unavailable."""
    if sys.platform == "darwin" or sys.platform == "win32":
        return {} if len(sys._current_frames()) == 1 else None
    # A thread must not end between the two calls, or its id would point to freed memory: no bytecode runs in between.
    clocks = set(map(time.pthread_getcpuclockid, chain.from_iterable(starmap(sys._current_frames, ((),)))))
    clocks.discard(time.pthread_getcpuclockid(threading.get_ident()))
    try:
        return {clock: time.clock_gettime_ns(clock) for clock in clocks}
    except OSError:  # a thread has ended
        return None
