"""RefGraph: the objects a region touched, how each is reached, what was read and what changed.

Nodes are keyed by object identity and keep their object alive while recording. A node with a source is *external*
(it existed before the region was entered). Key types: Node, RefGraph, Read.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from magpy_core.refgraph import kinds, printer
from magpy_core.refgraph.fields import ABSENT
from magpy_core.refgraph.guard_kind import GuardKind
from magpy_core.refgraph.snapshot import Change, Snapshot, slot_name
from magpy_core.refgraph.source import Source, SourceTable


@dataclass(slots=True)
class Read:
    """One guarded edge: ``kind`` of ``source`` was ``expected`` at the site (None: by the region's entry itself)."""

    source: Source
    kind: GuardKind
    expected: Any
    site: Any = None


@dataclass(slots=True, eq=False, repr=False)
class Node:
    """One external object. ``snapshot`` is its shallow state at first write (or first pass to unknown native code)."""

    obj: Any
    source: Source
    kind: int
    type_name: str
    snapshot: Snapshot | None = None
    written_at: list[Any] = field(default_factory=list)
    contents_read: bool = False
    addressed: bool = False  # its address was the key of a memo: no other object of the region may be this one
    summary: str = ""
    was_written: bool = False
    # slots written by name: part of the effect even when the write left them as they were: a later call may
    # start from another value that nothing guards
    forced: list[tuple[str, Any]] = field(default_factory=list)
    # what events showed of the writes: what was appended, and the last value of each slot (ABSENT: it was deleted)
    appended: list[Any] = field(default_factory=list)
    noted: dict[Any, Any] = field(default_factory=dict)

    def note_write(self, key: Any, value: Any) -> None:
        """An event shows that the region writes ``value`` to slot ``key``."""
        self.noted[slot_name(key)] = value

    def explains(self, change: Change) -> bool:
        """Whether events have shown that the region made this change, which is its last."""
        if change.op == "extend":
            return len(change.value) == len(self.appended) and all(map(operator.is_, change.value, self.appended))
        if change.op in ("add", "discard"):
            return self.noted.get(id(change.value)) is (change.value if change.op == "add" else ABSENT)
        if change.op == "replace":
            return False
        value = ABSENT if change.op.startswith("del_") else change.value
        return self.noted.get(slot_name(change.key), self) is value

    def release(self) -> None:
        """Drop the object, its snapshot, and the values and keys written to it; names of slots stay, for the printer."""
        self.summary = self.summary or repr(self)
        if self.kind != kinds.IDENTITY:
            self.obj = None
        self.snapshot = None
        self.appended, self.noted = [], {}
        self.forced = [(op, k) for op, k in self.forced if op.startswith(("set_", "maybe_")) and type(k) is str]

    def __repr__(self) -> str:
        if self.summary:
            return self.summary
        return f"Node({self.source.describe()}: {kinds.NAMES[self.kind]} {self.type_name})"


@dataclass(repr=False)
class RefGraph:
    """All that one recording learned about the world outside the region. ``str()`` prints it."""

    sources: SourceTable = field(default_factory=SourceTable)
    nodes: dict[int, Node] = field(default_factory=dict)
    reads: list[Read] = field(default_factory=list)
    _seen: set[tuple[int, str]] = field(default_factory=set)
    assumed_internal: dict[int, tuple[Any, Any]] = field(default_factory=dict)
    errors: list[tuple[Node, Any]] = field(default_factory=list)  # exceptions from outside, their tracebacks
    watch: Callable[[Snapshot], None] | None = None  # is called with each snapshot, and may refuse that it is kept

    def node(self, obj: Any) -> Node | None:
        return self.nodes.get(id(obj))

    def add(self, obj: Any, source: Source) -> Node:
        """Register ``obj`` as reached by ``source`` (first source wins; later ones become alias facts)."""
        node = self.nodes.get(id(obj))
        if node is None:
            node = self.nodes[id(obj)] = Node(obj, source, kinds.kind_of(obj), type(obj).__name__)
            if kinds.is_a(obj, BaseException):
                self.errors.append((node, obj.__traceback__))
        return node

    def read(self, source: Source, kind: GuardKind, expected: Any, site: Any) -> bool:
        """Record a guarded edge once; True when it is new."""
        key = (id(source), kind.check(expected))
        if key in self._seen:
            return False
        self._seen.add(key)
        self.reads.append(Read(source, kind, expected, site))
        return True

    def snapshot(self, node: Node) -> Snapshot:
        """The node's state now, taken once, before its first write."""
        if node.snapshot is None:
            node.was_written = True
            taken = Snapshot(node.obj, node.kind)
            if self.watch is not None:
                self.watch(taken)
            node.snapshot = taken
        return node.snapshot

    def written(self) -> Iterator[Node]:
        """Nodes whose state may have changed, in order of first touch."""
        return (n for n in self.nodes.values() if n.snapshot is not None)

    def release(self) -> None:
        """Keep only what describes the graph: no object of the program, but for those guarded by identity."""
        self.assumed_internal.clear()
        self.errors.clear()
        self.watch = None
        for node in self.nodes.values():
            node.release()
        for read in self.reads:
            read.expected = read.kind.released(read.expected)

    def forget(self) -> None:
        """Let go of every object."""
        self.nodes.clear()
        self.reads.clear()
        self.assumed_internal.clear()

    def __str__(self) -> str:
        return printer.to_text(self)

    def __repr__(self) -> str:
        return f"<RefGraph: {len(self.nodes)} nodes, {len(self.reads)} reads>"
