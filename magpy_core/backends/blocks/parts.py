"""How many of the parts of a graph that are compiled separately are done. Key functions: reporting, count.

Each part is in the compilers' caches as soon as it is compiled: a program that ends before the whole graph is compiled loses
only the part that was being compiled.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_REPORT: ContextVar[Callable[[int, int], None] | None] = ContextVar("_REPORT", default=None)


@contextmanager
def reporting(report: Callable[[int, int], None]) -> Iterator[None]:
    """Calls ``report(done, parts)`` whenever a part has been compiled inside."""
    before = _REPORT.set(report)
    try:
        yield
    finally:
        _REPORT.reset(before)


def count(done: int, parts: int) -> None:
    """``done`` of so many parts have been compiled."""
    if (report := _REPORT.get()) is not None:
        report(done, parts)
