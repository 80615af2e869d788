"""The source locations of TorchDynamo's events. Key functions: of_break, of_function, of_line."""

from __future__ import annotations

import linecache
import os
from collections.abc import Sequence
from dataclasses import replace
from types import CodeType

from magpy_core._compat.torch.dynamo_watch import Spot
from magpy_core.findings import Location, Position, Range
from magpy_core.monitor.positions import code_location, frame_location, frames_inside, is_user_file
from magpy_core.products.dynamo.wording import function_name
from magpy_core.regions.lines import line_location


def of_break(spots: Sequence[Spot], fallback: Location) -> tuple[Location, tuple[Location, ...]]:
    """The innermost user expression, and the path to the library's line if the break is in a library."""
    traced = [_of_spot(spot) for spot in spots]
    own = [k for k, location in enumerate(traced) if is_user_file(location.file)]
    if own:
        beyond = traced[own[-1] :]
        return traced[own[-1]], tuple(beyond) if len(beyond) > 1 else ()
    place = running() or fallback
    return place, (place, *traced)


def _of_spot(spot: Spot) -> Location:
    line, _, column, _ = spot.positions
    name = function_name(spot.code.co_name)
    if column is None:
        found = line_location(spot.code.co_filename, line or spot.code.co_firstlineno, name)
    else:
        found = code_location(spot.code, spot.positions)
    return Location(os.path.abspath(found.file) if not found.file.startswith("<") else found.file, found.range, name)


def running() -> Location | None:
    """The innermost user expression that Python is evaluating: it called the code being compiled."""
    for frame in frames_inside():
        if is_user_file(frame.f_code.co_filename):
            return replace(frame_location(frame), function=function_name(frame.f_code.co_name))
    return None


def of_function(code: CodeType, fallback: Location) -> Location:
    """The definition of a user function."""
    if not is_user_file(code.co_filename):
        return fallback
    name = function_name(code.co_name)
    return line_location(os.path.abspath(code.co_filename), _definition(code, name), name)


def _definition(code: CodeType, name: str) -> int:
    """The line of ``def``, after decorators; for a resume function, further up."""
    first = code.co_firstlineno
    lines = (*range(first, first + 30), *range(first, 0, -1))
    return next((n for n in lines if f"def {name}(" in linecache.getline(code.co_filename, n)), first)


def of_line(code: CodeType, file: str, line: int, expression: str) -> Location | None:
    """The location of ``expression`` in the line that a guard's comment names, else of the statement."""
    own = line and file and is_user_file(code.co_filename)
    if not own or not code.co_filename.endswith(file.lstrip("./")):
        return None
    path = os.path.abspath(code.co_filename)
    text = linecache.getline(path, line)
    at = text.find(expression) if expression else -1
    if at < 0:
        return line_location(path, line, function_name(code.co_name))
    span = Range(Position(line - 1, at), Position(line - 1, at + len(expression)))
    return Location(path, span, function_name(code.co_name))
