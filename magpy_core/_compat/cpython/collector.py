"""Large imports and the garbage collector. Key function: collector_paused."""

from __future__ import annotations

import contextlib
import gc
import threading
from collections.abc import Iterator


@contextlib.contextmanager
def collector_paused() -> Iterator[None]:
    """Without collections: nearly all objects that an import makes stay, and looking for garbage among them takes up to a
    quarter of its time. Another thread of the program would see that they are off, and might switch them off too.

    ``gc.freeze`` would save more, at later collections and at the interpreter's exit, but hides torch's functions from
    ``gc.get_referrers``, by which a recording finds the function of a frame that native code has called.
    """
    pauses = gc.isenabled() and threading.active_count() == 1
    if pauses:
        gc.disable()
    try:
        yield
    finally:
        if pauses:
            gc.enable()
