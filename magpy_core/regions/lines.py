"""Lines of a program as Locations. Key function: line_location."""

from __future__ import annotations

import linecache
import re

from magpy_core.findings import Location, Position, Range

_DEFINITION = re.compile(r"\s*(?:async\s+)?(?:def|class)\s+\w+")


def line_location(file: str, line: int, function: str = "") -> Location:
    """A source line (1-based) as a Location; of a definition its keyword and name, as signatures are long."""
    text = linecache.getline(file, line).rstrip("\n")
    start = len(text) - len(text.lstrip())
    definition = _DEFINITION.match(text)
    end = definition.end() if definition is not None else len(text)
    return Location(file, Range(Position(line - 1, start), Position(line - 1, max(end, start + 1))), function)
