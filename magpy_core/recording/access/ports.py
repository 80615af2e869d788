"""Interfaces between the trackers of reads, writes and calls: native code reads its arguments, and may call what it finds
there. Key type: AccessTracker.
"""

from __future__ import annotations

import types
from collections.abc import Iterable
from typing import Any, Protocol

from magpy_core.recording.basic_tracker import BasicTracker
from magpy_core.recording.basics import Basics
from magpy_core.recording.facts.group import Facts
from magpy_core.refgraph.lookup import Found
from magpy_core.refgraph.node import Node
from magpy_core.refgraph.snapshot import Snapshot


class Globals(Protocol):
    def read(self, g: dict[str, Any], name: str, site: Any) -> None: ...
    def read_module(self, module: types.ModuleType, name: str, site: Any) -> None: ...
    def changed(self, g: dict[str, Any], name: str, site: Any, value: Any) -> None: ...


class Reads(Protocol):
    def attr(self, obj: Any, name: str, site: Any) -> None: ...
    def raw_attr(self, obj: Any, name: str, site: Any) -> None: ...
    def external_attr(self, node: Node, obj: Any, name: str, found: Found, site: Any) -> None: ...
    def getset(self, node: Node, obj: Any, name: str, site: Any) -> None: ...
    def thread_local(self, site: Any) -> None: ...


class Items(Protocol):
    def read(self, obj: Any, key: Any, site: Any) -> None: ...
    def dict_key(self, node: Node, key: Any, site: Any) -> None: ...
    def dict_item(self, node: Node, key: Any, site: Any) -> None: ...
    def sequence_item(self, node: Node, key: Any, site: Any) -> None: ...


class Writes(Protocol):
    def count_write(self, obj: Any) -> None: ...
    def blind_write(self, node: Node, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool: ...
    def mark_written(self, node: Node, site: Any) -> Snapshot: ...
    def slot_written(self, node: Node, op: str, key: Any, value: Any, site: Any) -> Snapshot: ...
    def variable_written(self, namespace: Node, name: str, value: Any, site: Any) -> None: ...


class Natives(Protocol):
    def state_read(self, obj: Any, site: Any) -> None: ...
    def call_getter(self, site: Any, fn: Any, args: tuple[Any, ...]) -> None: ...


class Callbacks(Protocol):
    consumes: bool
    formats: bool
    selects: bool
    last_site: Any

    def called(self, site: Any, fn: Any, calls: list[tuple[Any, ...]] | None, walked: Iterable[Any]) -> None: ...


class Arguments(Protocol):
    def read(self, site: Any, args: Any, kwargs: Any, shallow: int | None = None, *, carry: bool = False) -> None: ...


class Flow(Protocol):
    def match(self, site: Any, subject: Any) -> None: ...


class Texts(Protocol):
    def formatted(self, value: Any, site: Any) -> None: ...
    def names_in_error(self, error: BaseException) -> None: ...


class AccessGroup:
    """The group, as its trackers see it."""

    globals: Globals
    reads: Reads
    items: Items
    writes: Writes
    natives: Natives
    callbacks: Callbacks
    arguments: Arguments
    flow: Flow
    texts: Texts


class Dispatch(Protocol):
    def dispatch(self, site: Any, fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None: ...
    def constructed_natively(self, cls: type) -> None: ...


class ContainerCalls(Protocol):
    def read_iterator(self, obj: Any, site: Any) -> None: ...


class CallGroup:
    """The group of the trackers of calls, as lower trackers see it."""

    dispatch: Dispatch
    container_calls: ContainerCalls


class AccessTracker(BasicTracker):
    """A tracker that guards reads and records writes."""

    basics: Basics
    facts: Facts
    access: AccessGroup
    calls: CallGroup
