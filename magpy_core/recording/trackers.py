"""Trackers: all parts of one recording. Key type: Trackers; key function: build.

Handling values, reads and calls is mutually recursive. A tracker refers to lower trackers by their types; those beside or
above it, which it also calls, are `Protocol`s in ``ports.py`` of its folder.
"""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import Any, get_type_hints

from magpy_core.recording.access.group import Access
from magpy_core.recording.basics import Basics
from magpy_core.recording.calls.group import Calls
from magpy_core.recording.dispatch import Dispatch
from magpy_core.recording.exit import Exit
from magpy_core.recording.facts.group import Facts
from magpy_core.recording.frames import Frames
from magpy_core.recording.imports import Imports
from magpy_core.recording.journal import Journal
from magpy_core.recording.ledger import Ledger
from magpy_core.recording.lifetimes import Lifetimes
from magpy_core.recording.modules import ModuleCalls
from magpy_core.recording.nodes.group import Nodes
from magpy_core.recording.operator_host import OperatorHost
from magpy_core.recording.output import OutputCalls
from magpy_core.recording.outside import Outside
from magpy_core.recording.torch_calls import TorchCalls


@dataclass(frozen=True)
class Trackers:
    """The groups, and the trackers that are in no group."""

    basics: Basics
    facts: Facts
    access: Access
    nodes: Nodes
    calls: Calls
    dispatch: Dispatch
    torch_calls: TorchCalls
    outside: Outside
    host: OperatorHost
    output: OutputCalls
    imports: Imports
    modules: ModuleCalls
    lifetimes: Lifetimes
    frames: Frames
    exit: Exit

    def all(self) -> list[Any]:
        """Each tracker, and each group."""
        own = list(vars(self).values())
        return own + [tracker for group in own if type(group) in _GROUPS.values() for tracker in vars(group).values()]


_HINTS = get_type_hints(Trackers)
_GROUPS: dict[str, type] = {name: _HINTS[name] for name in ("basics", "facts", "access", "nodes", "calls")}


def _in_order() -> list[tuple[str, type, tuple[str, ...], str | None]]:
    """The trackers in order of dependency: name, class, parameters of the constructor, group."""
    group_of = {name: group for group, cls in _GROUPS.items() for name in get_type_hints(cls)}
    classes = {name: cls for group in _GROUPS.values() for name, cls in get_type_hints(group).items()}
    classes |= {name: cls for name, cls in _HINTS.items() if name not in _GROUPS}
    order: dict[str, tuple[str, type, tuple[str, ...], str | None]] = {}

    def visit(name: str) -> None:
        needed = tuple(inspect.signature(classes[name]).parameters)
        for other in needed:
            if other in classes and other not in order:
                visit(other)
        order[name] = (name, classes[name], needed, group_of.get(name))

    for name in classes:
        visit(name)
    return list(order.values())


_ORDER = _in_order()


def build(ledger: Ledger, journal: Journal) -> Trackers:
    """The trackers of a recording. Each constructor gets its parameters by name; groups are still empty then."""
    made: dict[str, Any] = {"ledger": ledger, "journal": journal, "refgraph": ledger.refgraph}
    made |= {name: group() for name, group in _GROUPS.items()}
    for name, cls, needed, group in _ORDER:
        made[name] = cls(*[made[other] for other in needed])
        if group is not None:
            setattr(made[group], name, made[name])
    return Trackers(*[made[name] for name in _HINTS])
