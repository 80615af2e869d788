"""Where in the program an operation was recorded. Key functions: place, path."""

from __future__ import annotations

import linecache

import torch.fx

from magpy_core.findings import Location, Position, Range
from magpy_core.monitor.positions import instruction_location, site_location


def place(node: torch.fx.Node) -> Location | None:
    """The program's own line: of the operation, or of the call into a library that it is in."""
    site, user = node.meta.get("magpy_site"), node.meta.get("magpy_user")
    location = None if site is None else site_location(site)
    if user is None or (location is not None and location.file == user[0]):
        return location
    file, line = str(user[0]), int(user[1])
    text = linecache.getline(file, line).rstrip("\n")
    start = len(text) - len(text.lstrip())
    return Location(file, Range(Position(line - 1, start), Position(line - 1, max(len(text), start + 1))))


def path(node: torch.fx.Node) -> tuple[Location, ...]:
    """The line of the region's own function that was running, and the operation's, if they are known."""
    outer, own = node.meta.get("magpy_outer"), place(node)
    found = [] if outer is None else [instruction_location(*outer)]
    return (*found, *([] if own is None or own in found else [own]))
