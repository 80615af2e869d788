"""What other threads did: the processor time of each. Key function: processor_times."""

from __future__ import annotations

import sys
import threading
import time
from itertools import chain, starmap


def processor_times() -> dict[int, int] | None:
    """Nanoseconds that each other thread with a Python frame has run, by its clock; None where that can't be told."""
    if sys.platform == "darwin" or sys.platform == "win32":
        return {} if len(sys._current_frames()) == 1 else None
    # A thread must not end between the two calls, or its number would be of freed memory: there is no bytecode in between.
    clocks = set(map(time.pthread_getcpuclockid, chain.from_iterable(starmap(sys._current_frames, ((),)))))
    clocks.discard(time.pthread_getcpuclockid(threading.get_ident()))
    try:
        return {clock: time.clock_gettime_ns(clock) for clock in clocks}
    except OSError:  # one has ended meanwhile
        return None
