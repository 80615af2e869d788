"""Source locations: sites and running frames as findings' Locations.

Columns: CPython counts UTF-8 bytes, a Location counts code points; the line's text (from linecache) is used to convert.
"""

from __future__ import annotations

import ast
import functools
import linecache
import os
import re
import sys
import sysconfig
from collections.abc import Iterator
from itertools import islice
from types import CodeType, FrameType
from typing import Any, Final

import torch

from magpy_core._compat.cpython.assembler import Position as InCode
from magpy_core._compat.torch import eval_frame
from magpy_core.findings.finding import Location, Position, Range
from magpy_core.monitor import hooks
from magpy_core.monitor.events import Site
from magpy_core.monitor.record import is_own_file

_COMMENT: Final = re.compile(r"(?:^|\s)#[^'\"]*$")
_WITH: Final = re.compile(r"(?:async\s+)?with\b")
_EVENT_FILES: Final = frozenset((hooks.FILE, eval_frame.__file__))
"""Files whose functions call an observer: during an event, the user's frame is the caller of one of their frames."""

_LIBRARIES: Final = tuple(
    {os.path.join(p, "") for k in ("stdlib", "platstdlib", "purelib", "platlib") if (p := sysconfig.get_path(k))}
)
_PACKAGES: Final = tuple({os.path.join(p, "") for k in ("purelib", "platlib") if (p := sysconfig.get_path(k))})
_TORCH: Final = os.path.join(os.path.dirname(torch.__file__), "")
_CELL: Final = "<ipython-input-"  # what IPython compiles, and keeps the lines of
_INSTALLED: Final = (f"{os.sep}site-packages{os.sep}", f"{os.sep}dist-packages{os.sep}")


@functools.lru_cache(maxsize=8192)
def is_user_file(filename: str) -> bool:
    """Whether a file exists and is the user's: not of the standard library, an installed package or MagPy."""
    if filename.startswith(_LIBRARIES) or is_own_file(filename) or any(p in filename for p in _INSTALLED):
        return False
    return has_source(filename)


@functools.lru_cache(maxsize=8192)
def is_installed_file(filename: str) -> bool:
    """Whether a file belongs to an installed package that is neither torch, whose functions a program is written in, nor
    MagPy: a user can't change it."""
    if is_own_file(filename) or filename.startswith(_TORCH):
        return False
    return filename.startswith(_PACKAGES) or any(p in filename for p in _INSTALLED)


@functools.lru_cache(maxsize=8192)
def has_source(filename: str) -> bool:
    """Whether lines of this file can be shown. A relative name is trusted: the program may have changed the directory."""
    if filename.startswith("<"):
        return filename.startswith(_CELL) and filename in linecache.cache
    return not os.path.isabs(filename) or filename in linecache.cache or os.path.exists(filename)


def _character(filename: str, lineno: int, column: int, module_globals: dict[str, Any] | None) -> int:
    """A UTF-8 byte column as a code-point column; unchanged if the line's text is unavailable."""
    line = linecache.getline(filename, lineno, module_globals)
    if line.isascii():
        return column
    return len(line.encode("utf-8", "surrogatepass")[:column].decode("utf-8", "ignore"))


def code_location(code: CodeType, position: InCode, module_globals: dict[str, Any] | None = None) -> Location:
    """The location of an instruction of ``code`` with this position from ``co_positions``."""
    lineno, end_lineno, col, end_col = position
    first = lineno or code.co_firstlineno
    last = end_lineno or first
    name = code.co_filename
    start = Position(first - 1, _character(name, first, col or 0, module_globals))
    end = Position(last - 1, _character(name, last, end_col or 0, module_globals))
    if last > first and _WITH.match(text := linecache.getline(name, first, module_globals), start.character):
        end = Position(first - 1, len(_COMMENT.sub("", text).rstrip()))  # only the first line of a block
    file = name if name.startswith("<") else os.path.abspath(name)
    return Location(file, Range(start, max(start, end)), code.co_qualname)


def site_location(site: Site) -> Location:
    """A site's file, range and function."""
    return code_location(site.code, (site.lineno or None, site.end_lineno or None, site.col, site.end_col))


def text_at(location: Location, longest: int = 60) -> str:
    """The source text at ``location`` on one line, shortened; empty where there is none."""
    start, end = location.range.start, location.range.end
    lines = [linecache.getline(location.file, n + 1) for n in range(start.line, end.line + 1)]
    lines[-1] = lines[-1][: end.character]
    lines[0] = lines[0][start.character :]
    if len(lines) > 1:
        lines = [_COMMENT.sub("", line).rstrip("\\\n") for line in lines]
    text = " ".join(" ".join(lines).split())
    return text if len(text) <= longest else text[: longest - 3] + "..."


def frame_location(frame: FrameType) -> Location:
    """The location of the instruction that a running frame executes."""
    return instruction_location(frame.f_code, frame.f_lasti, frame.f_globals)


def instruction_location(code: CodeType, offset: int, module_globals: dict[str, Any] | None = None) -> Location:
    """The location of the instruction at a byte ``offset`` (``f_lasti``, ``tb_lasti``) of ``code``."""
    position = next(islice(code.co_positions(), max(offset, 0) // 2, None), (None, None, None, None))
    return code_location(code, position, module_globals)


def user_frame() -> FrameType | None:
    """The Python frame that caused the current event; outside of events, the innermost frame without MagPy's code."""
    frame: FrameType | None = sys._getframe(1)
    innermost: FrameType | None = None
    while frame is not None:
        filename = frame.f_code.co_filename
        if filename in _EVENT_FILES:  # the frames inside it are the observer's
            return frame.f_back
        if innermost is None and not is_own_file(filename):
            innermost = frame
        frame = frame.f_back
    return innermost


def past_own_frames(frame: FrameType | None, also: str = "") -> FrameType | None:
    """The innermost of ``frame`` and its callers that runs neither MagPy's code nor that of the file ``also``."""
    while frame is not None and (is_own_file(name := frame.f_code.co_filename) or name == also):
        frame = frame.f_back
    return frame


def current_globals() -> dict[str, Any]:
    """The globals of :func:`user_frame`, which ``global_read`` and the other global events refer to."""
    frame = user_frame()
    return frame.f_globals if frame is not None else {}


def frames_inside(stop: FrameType | None = None) -> Iterator[FrameType]:
    """The frames that don't run MagPy's code, innermost first, up to but not including ``stop``."""
    frame = user_frame()
    while frame is not None and frame is not stop:
        if not is_own_file(frame.f_code.co_filename):
            yield frame
        frame = frame.f_back


def return_location(code: CodeType, line: int = 0) -> Location | None:
    """Where a function returns: the ``return`` statement that contains ``line``, else its only one; None if ambiguous."""
    try:
        tree = ast.parse("".join(linecache.getlines(code.co_filename)))
    except (SyntaxError, ValueError):
        return None
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name == code.co_name:
            returns = _returns(node)
            holding = [r for r in returns if r.lineno <= line <= (r.end_lineno or r.lineno)]
            first = min([node.lineno, *(d.lineno for d in node.decorator_list)])
            if first == code.co_firstlineno and 1 in (len(holding), len(returns)):
                place = (holding or returns)[0]
                return code_location(code, (place.lineno, place.end_lineno, place.col_offset, place.end_col_offset))
    return None


def _returns(function: ast.AST) -> list[ast.Return]:
    """The ``return`` statements of a function, without those of functions defined in it."""
    found: list[ast.Return] = []
    todo = list(ast.iter_child_nodes(function))
    while todo:
        node = todo.pop()
        if isinstance(node, ast.Return):
            found.append(node)
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef):
            todo.extend(ast.iter_child_nodes(node))
    return found
