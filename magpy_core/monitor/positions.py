"""Where things happened, as the user sees it: sites and running frames as findings' Locations.

Columns: CPython counts UTF-8 bytes, a Location counts code points; the line's text (through linecache) tells the difference.
"""

from __future__ import annotations

import linecache
import os
import sys
from itertools import islice
from types import CodeType, FrameType
from typing import Any, Final

from magpy_core._compat import eval_frame
from magpy_core.findings.finding import Location, Position, Range
from magpy_core.monitor import hooks
from magpy_core.monitor.events import Site
from magpy_core.monitor.record import is_own_file

_EVENT_FILES: Final = frozenset((hooks.__file__, eval_frame.__file__))
"""Files whose functions call an observer: in an event, one of their frames is right above the user's."""


def _character(filename: str, lineno: int, column: int, module_globals: dict[str, Any] | None) -> int:
    """A UTF-8 byte column as a code-point column; unchanged if the line's text is not to be had."""
    line = linecache.getline(filename, lineno, module_globals)
    if line.isascii():
        return column
    return len(line.encode("utf-8", "surrogatepass")[:column].decode("utf-8", "ignore"))


def _location(
    code: CodeType,
    position: tuple[int | None, int | None, int | None, int | None],
    module_globals: dict[str, Any] | None = None,
) -> Location:
    lineno, end_lineno, col, end_col = position
    first = lineno or code.co_firstlineno
    last = end_lineno or first
    name = code.co_filename
    start = Position(first - 1, _character(name, first, col or 0, module_globals))
    end = Position(last - 1, _character(name, last, end_col or 0, module_globals))
    file = name if name.startswith("<") else os.path.abspath(name)
    return Location(file, Range(start, max(start, end)), code.co_qualname)


def site_location(site: Site) -> Location:
    """A site's file, range and function."""
    return _location(site.code, (site.lineno or None, site.end_lineno or None, site.col, site.end_col))


def frame_location(frame: FrameType) -> Location:
    """The instruction a running frame is at."""
    code = frame.f_code
    position = next(islice(code.co_positions(), max(frame.f_lasti, 0) // 2, None), (None, None, None, None))
    return _location(code, position, frame.f_globals)


def user_frame() -> FrameType | None:
    """The Python frame an event is about; outside of events, the innermost running one that is not our own code."""
    frame: FrameType | None = sys._getframe(1)
    innermost: FrameType | None = None
    while frame is not None:
        filename = frame.f_code.co_filename
        if filename in _EVENT_FILES:  # whatever is further in is the observer
            return frame.f_back
        if innermost is None and not is_own_file(filename):
            innermost = frame
        frame = frame.f_back
    return innermost


def current_globals() -> dict[str, Any]:
    """The globals of :func:`user_frame`: what ``global_read`` and the other global events are about."""
    frame = user_frame()
    return frame.f_globals if frame is not None else {}


def current_location() -> Location | None:
    """The instruction the innermost user frame is at."""
    frame = user_frame()
    return None if frame is None else frame_location(frame)


def call_path(stop: FrameType | None = None) -> list[Location]:
    """The user frames now running on this thread, outermost first, each at its current instruction.

    Our own frames are left out; ``stop`` and everything outside of it too (to begin the path at a region's call).
    """
    path: list[Location] = []
    frame = user_frame()
    while frame is not None and frame is not stop:
        if not is_own_file(frame.f_code.co_filename):
            path.append(frame_location(frame))
        frame = frame.f_back
    path.reverse()
    return path
