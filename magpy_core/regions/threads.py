"""Where each thread is: in a region, where nothing is compiled, or apart from regions. Key functions: busy, disabled,
outside_regions."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator

#: ``depth``: where this thread is, 0 if it is outside of everything; ``records``: whether a recording goes on in it.
THREAD = threading.local()
INSIDE, OFF, APART = 1, 2, 3


def busy() -> bool:
    """Whether this thread is inside a region call (inner regions are part of the outer one)."""
    return getattr(THREAD, "depth", 0) > 0


@contextlib.contextmanager
def disabled() -> Iterator[None]:
    """A context in which this thread runs everything compiled in eager mode."""
    before = getattr(THREAD, "depth", 0)
    THREAD.depth = OFF
    try:
        yield
    finally:
        THREAD.depth = before


@contextlib.contextmanager
def outside_regions() -> Iterator[None]:
    """A context that is part of no region: what the program has compiled makes regions of its own in it, unless a recording
    of this thread goes on."""
    before = getattr(THREAD, "depth", 0)
    if before in (0, INSIDE) and not getattr(THREAD, "records", False):
        THREAD.depth = APART
    try:
        yield
    finally:
        THREAD.depth = before
