"""Interfaces between the trackers of facts: a value leads to its class, a class to functions, and these to values.

Key type: FactTracker.
"""

from __future__ import annotations

import types
from typing import Any, Protocol

from magpy_core.recording.basic_tracker import BasicTracker
from magpy_core.recording.basics import Basics
from magpy_core.recording.facts.slot import Slot
from magpy_core.refgraph.node import Node
from magpy_core.refgraph.source import Source


class Roots(Protocol):
    def const_root(self, obj: Any, label: str | None = None) -> Node: ...
    def attribute(self, owner: Any, name: str) -> Source: ...
    def guard_absent(self, holder: Source, name: str, site: Any) -> None: ...


class Values(Protocol):
    def read(self, source: Source, value: Any, site: Any, store: Slot | None = None, *, exact: bool = False) -> Any: ...
    def item_slot(self, node: Node, key: Any) -> Slot | None: ...


class Classes(Protocol):
    def member(self, tp: type, name: str, site: Any) -> None: ...
    def identity_read(self, obj: Any, site: Any) -> None: ...
    def class_used(self, tp: type, site: Any) -> None: ...
    def special_methods(self, obj: Any, site: Any) -> None: ...


class Functions(Protocol):
    known_codes: set[types.CodeType]

    def guard(self, fn: Any) -> None: ...


class Contents(Protocol):
    def read_all(self, node: Node, site: Any, values: bool = True, *, carry: bool = False) -> None: ...


class Settings(Protocol):
    def read(self, site: Any, fn: Any, args: tuple[Any, ...], result: Any) -> bool: ...


class FactGroup:
    """The group, as its trackers see it."""

    roots: Roots
    values: Values
    classes: Classes
    functions: Functions
    contents: Contents
    settings: Settings


class FactTracker(BasicTracker):
    """A tracker that guards facts."""

    basics: Basics
    facts: FactGroup
