"""What a user reads of a difference: what differs, where it was computed, and by how much. Key function: describe."""

from __future__ import annotations

import linecache
from dataclasses import dataclass

import torch.fx

from magpy_core.findings import Location, Position, Range
from magpy_core.monitor.positions import site_location, text_at
from magpy_core.opgraph.functions import operator_name
from magpy_core.opgraph.segments import Segment
from magpy_core.verification.difference import Difference


@dataclass(frozen=True)
class Description:
    text: str
    location: Location | None  # None: no line of the program is known to have computed it


def describe(found: Difference, segment: Segment, *, has_served: bool = False) -> Description:
    """``found`` in the graph of ``segment``. ``has_served``: the code has served calls, which were not all compared."""
    node = _node(found.what, segment)
    location = None if node is None else place(node)
    what = f"`{text_at(location)}`" if location is not None and text_at(location) else found.what
    operator = "" if node is None or node.op == "placeholder" else f", computed by `{operator_name(node)}`"
    role = "" if what == found.what or found.what.startswith("result") else f" ({found.what})"
    return Description(
        f"Compiled code gives another value than eager mode for {what}{role}{operator}: it {found.text}. "
        + (
            "The compiled code is not used from now on; earlier calls that were not compared may have been wrong."
            if has_served
            else "The compiled code is not used, and nothing has changed."
        ),
        location,
    )


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


def _node(what: str, segment: Segment) -> torch.fx.Node | None:
    """The operation that computed what differs, or that read or wrote the input."""
    kind, _, number = what.rpartition(" ")
    if not number.isdigit():
        return None
    index = int(number)
    if kind == "result":
        return segment.outputs[index] if index < len(segment.outputs) else None
    node = segment.inputs[index]
    users = [user for user in node.users if user in segment.nodes]
    return (users[-1] if kind == "written input" else users[0]) if users else node
