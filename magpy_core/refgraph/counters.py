"""Counters: `itertools.count` objects from outside, whose next number is a source. Key functions: position, advance."""

from __future__ import annotations

import itertools
from typing import Any


def position(counter: Any) -> int | None:
    """The number that ``next(counter)`` will return, if the counter counts integers one by one. Its text shows it: other
    ways are deprecated."""
    shown = repr(counter)[len("count(") : -1] if type(counter) is itertools.count else ""
    return int(shown) if shown.removeprefix("-").isdecimal() else None


def advance(counter: Any, times: int) -> None:
    """Take so many numbers."""
    for _ in range(times):
        next(counter)
