"""What a user reads of a difference: what differs, where it was computed, and by how much. Key function: describe."""

from __future__ import annotations

from dataclasses import dataclass

import torch.fx

from magpy_core.findings import Location
from magpy_core.monitor.positions import text_at
from magpy_core.opgraph.functions import operator_name
from magpy_core.opgraph.places import place
from magpy_core.opgraph.segments import Segment
from magpy_core.verification.cause import Cause
from magpy_core.verification.difference import Difference


@dataclass(frozen=True)
class Description:
    text: str
    location: Location | None  # None: no line of the program is known to have computed it
    cause: Cause | None = None


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


def describe_recorded(found: Difference, node: torch.fx.Node | None) -> Description:
    """``found`` between the recorded graph and the program; ``node``: the operation, if known."""
    location = None if node is None else place(node)
    what = f"`{text_at(location)}`" if location is not None and text_at(location) else found.what
    operator = "" if node is None or node.op == "placeholder" else operator_name(node)
    computed = f", computed by `{operator}`" if operator else ""
    return Description(
        f"The graph that MagPy has recorded gives another value than the program for {what}{computed}: it {found.text}. "
        "It is not compiled, and nothing has changed.",
        location,
        Cause(
            "MagPy's recording is wrong: please report it to MagPy.", (operator,) if operator else (), found.largest, "MagPy"
        ),
    )


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
