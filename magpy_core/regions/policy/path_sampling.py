"""Which paths a region takes, found out before anything is compiled. Key type: PathSampling.

A graph that depends on decisions on data serves one path. Compiling it may take a minute, and each decision may double the
number of paths. So a few calls that its guards allow are recorded first, as the program can afford it: if they take the same
path, or one other, graphs of whole calls are compiled; if they take more, the region is cut. As training goes on, paths
change: before compiled code is loaded, one more call shows whether it would serve.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from magpy_core.limits import LIMITS

if TYPE_CHECKING:
    from magpy_core.capture.build import Capture
    from magpy_core.recording.trace import Trace


class PathSampling:
    """Of one region. A capture that it holds is not compiled: calls that fit it are recorded once more."""

    def __init__(self) -> None:
        self._left = LIMITS.path_recordings

    def add(self, capture: Capture) -> None:
        """``capture`` is new: it is held if its paths are to be explored."""
        if len(path_of(capture.trace)) >= LIMITS.fewest_decisions:
            capture.require_path_check()
            if self._left:
                capture.hold()

    @staticmethod
    def is_known(trace: Trace, captures: Iterable[Capture]) -> bool:
        """Whether the path of ``trace`` is that of a capture."""
        path = path_of(trace)
        return any(path_of(capture.trace) == path for capture in captures)

    @staticmethod
    def is_one_too_many(captures: Iterable[Capture]) -> bool:
        """Whether those of ``captures`` are all the paths whose graphs are to be captured whole."""
        return len({path_of(capture.trace) for capture in captures}) >= LIMITS.paths

    def sampled(self) -> bool:
        """A call that a held capture fits was recorded. Whether these were enough."""
        self._left -= 1
        return self._left <= 0

    def shorten(self) -> None:
        """The program can't afford a recording now: a single one later tells as much as several in a row."""
        self._left = min(self._left, 1)

    def end(self, captures: Iterable[Capture]) -> None:
        """Captures are compiled from now on."""
        self._left = 0
        for capture in captures:
            capture.release()


def path_of(trace: Trace) -> tuple[Any, ...]:
    """The decisions on data that cut the graph."""
    return tuple((cut.place, repr(cut.outcome)) for cut in trace.decisions if cut.place is not None)
