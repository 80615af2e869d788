"""What Ctrl-C does after the program's code has ended. Key function: interrupts_call."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def interrupts_call(function: Callable[[], object]) -> Iterator[None]:
    """In the block, SIGINT calls ``function`` on the main thread, and nothing else, whatever the program has made of it."""
    before = signal.getsignal(signal.SIGINT)
    if before is None or threading.current_thread() is not threading.main_thread():
        yield  # a handler that native code has installed can't be put back
        return
    signal.signal(signal.SIGINT, lambda *_: function())
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
