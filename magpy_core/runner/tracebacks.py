"""Shows a program's exception exactly as Python does, without MagPy's frames. Key functions: strip, display, place_of.

Our frames are at the bottom of the stack (the runner) and between the user's (a region's wrapper); eager mode has neither.
"""

from __future__ import annotations

import linecache
import os
import re
import sys
import weakref
from types import CodeType, TracebackType
from typing import Any

_OURS = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_STDLIB = os.path.dirname(os.path.abspath(os.__file__)) + os.sep


_SEQUENCE = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])")
"""A control sequence of a terminal: color, title, cursor."""
_hidden: weakref.WeakSet[CodeType] = weakref.WeakSet()


def hide_frames_of(code: CodeType) -> None:
    """``code`` is ours, although it names a file of the user's."""
    _hidden.add(code)


def is_ours(filename: str) -> bool:
    """Whether code from ``filename`` is MagPy's: a file of the package, or code it generated."""
    return filename.startswith((_OURS, "<magpy"))


def is_user(filename: str) -> bool:
    """Whether ``filename`` is the user's: not MagPy's, the standard library's or an installed package's."""
    parts = ("/site-packages/", "/dist-packages/")
    return not (filename.startswith(("<", _STDLIB)) or is_ours(filename) or any(p in filename for p in parts))


def _strip_frames(tb: TracebackType | None) -> TracebackType | None:
    kept: list[TracebackType] = []
    between = False  # whether frames of ours are between the last kept one and this one
    while tb is not None:
        frame = tb.tb_frame
        bottom = frame.f_back is None or frame.f_globals.get("__name__") == "magpy_bootstrap"
        bootstrap = frame.f_code.co_filename == "<string>" and bottom
        if not bootstrap and not is_ours(frame.f_code.co_filename) and frame.f_code not in _hidden:
            if between and kept and _is_cut_from(frame.f_code, kept[-1].tb_frame.f_code):
                kept.pop()
            kept.append(tb)
            between = False
        else:
            between = True
        tb = tb.tb_next
    below: TracebackType | None = None
    for item in reversed(kept):
        item.tb_next = below
        below = item
    return below


def _is_cut_from(code: CodeType, outer: CodeType) -> bool:
    """Whether ``code`` is a stretch of ``outer``'s statements, which our frames have called."""
    same = (code.co_filename, code.co_qualname) == (outer.co_filename, outer.co_qualname)
    return same and code.co_firstlineno != outer.co_firstlineno


def strip(exc: BaseException) -> None:
    """Removes our frames from ``exc`` and every chained or grouped exception, in place to keep their identity."""
    seen: set[int] = set()
    todo: list[BaseException] = [exc]
    while todo:
        one = todo.pop()
        if id(one) in seen:
            continue
        seen.add(id(one))
        one.__traceback__ = _strip_frames(one.__traceback__)
        if one.__context__ is not None and type(one.__context__).__module__.startswith("magpy_core."):
            one.__context__ = None  # raised by us while falling back to eager mode, which has no such context
        todo += [e for e in (one.__cause__, one.__context__) if e is not None]
        if isinstance(one, BaseExceptionGroup):
            todo += one.exceptions


def display(exc: BaseException) -> None:
    """Handles an uncaught exception (stripped before) like the interpreter: ``sys.last_*``, then ``sys.excepthook``."""
    kind, tb = type(exc), exc.__traceback__
    sys.last_type, sys.last_value, sys.last_traceback = kind, exc, tb
    if sys.version_info >= (3, 12):
        sys.last_exc = exc
    try:
        sys.excepthook(kind, exc, tb)
    except SystemExit:
        raise
    except BaseException as broken:
        strip(broken)
        print("Error in sys.excepthook:", file=sys.stderr)
        sys.__excepthook__(type(broken), broken, broken.__traceback__)
        print("\nOriginal exception was:", file=sys.stderr)
        sys.__excepthook__(kind, exc, tb)


def text_of(value: object, limit: int) -> str:
    """``str(value)``, or its ``msg``, on one line, without what controls a terminal. The program's ``__str__`` may raise."""
    try:
        text = str(getattr(value, "msg", None) or value)
    except BaseException:  # as Python, which shows `<exception str() failed>`
        return f"<{type(value).__name__}: its text can't be shown>"
    text = _SEQUENCE.sub("", text)
    text = "".join(c if c.isprintable() or c.isspace() else "\N{REPLACEMENT CHARACTER}" for c in text)
    return " ".join(text.split())[:limit]


def place_of(exc: BaseException) -> dict[str, Any] | None:
    """The origin of ``exc`` in the user's code: file, 1-based line, function, 0-based columns; None if there is none."""
    if isinstance(exc, SyntaxError) and exc.filename and exc.lineno:
        if exc.__traceback__ is None or is_user(exc.filename):
            start = max((exc.offset or 1) - 1, 0)
            end = exc.end_offset - 1 if exc.end_offset and exc.end_lineno == exc.lineno else start + 1
            return _place(exc.filename, exc.lineno, "", start, max(end, start))
    found = None
    tb = exc.__traceback__
    while tb is not None:
        code = tb.tb_frame.f_code
        if is_user(code.co_filename):
            positions = list(code.co_positions())
            line, end_line, start_col, end_col = positions[tb.tb_lasti // 2] if tb.tb_lasti >= 0 else (None,) * 4
            columns = (start_col, end_col) if line == end_line == tb.tb_lineno and end_col is not None else (0, 0)
            start, end = (_characters(code.co_filename, tb.tb_lineno, c or 0) for c in columns)
            found = _place(code.co_filename, tb.tb_lineno, code.co_qualname, start, end)
        tb = tb.tb_next
    return found


def _characters(filename: str, line: int, column: int) -> int:
    """UTF-8 byte column -> code points."""
    text = linecache.getline(filename, line).encode("utf-8", "surrogatepass")[:column]
    return len(text.decode("utf-8", "replace"))


def _place(file: str, line: int, function: str, start: int, end: int) -> dict[str, Any]:
    return {"file": os.path.abspath(file), "line": line, "function": function, "start": start, "end": end}
