"""RefGraph: the objects a region touched, how each is reached, what was read and what changed.

Nodes are keyed by object identity and keep their object alive while recording. A node with a source is *external*
(it existed before the region was entered). Key type: RefGraph.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from magpy_core.refgraph import kinds, printer
from magpy_core.refgraph.guard_kind import GuardKind, Read
from magpy_core.refgraph.node import Node
from magpy_core.refgraph.shown import is_hidden
from magpy_core.refgraph.snapshot import Snapshot
from magpy_core.refgraph.source import Source
from magpy_core.refgraph.source_table import SourceTable


@dataclass(repr=False)
class RefGraph:
    """Everything that one recording found about objects outside the region. ``str()`` prints it."""

    sources: SourceTable = field(default_factory=SourceTable)
    nodes: dict[int, Node] = field(default_factory=dict)
    reads: list[Read] = field(default_factory=list)
    _seen: set[tuple[int, str]] = field(default_factory=set)
    assumed_internal: dict[int, tuple[Any, Any]] = field(default_factory=dict)
    errors: list[tuple[Node, Any]] = field(default_factory=list)  # exceptions from outside, their tracebacks
    private: set[int] = field(default_factory=set)  # ids of our copies, which the program gets instead of the originals
    class_writes: dict[tuple[int, str], tuple[type, str, Any, list[Any]]] = field(default_factory=dict)
    """Numbers that are set on classes, by id and name: class, name, number, sites."""
    advanced: dict[int, tuple[Node, int, Any]] = field(default_factory=dict)
    """Counters that the region advances, by id: node, how many numbers it takes, site."""
    watch: Callable[[Snapshot], None] | None = None  # called with each snapshot; may raise to refuse it

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
        """Record a guarded edge once; True if it is new."""
        key = (id(source), kind.check(expected))
        if key in self._seen:
            return False
        self._seen.add(key)
        self.reads.append(Read(source, kind, expected, site))
        is_hidden(source, expected)
        return True

    def snapshot(self, node: Node, *, of_variable: bool = False) -> Snapshot:
        """The node's snapshot, taken once, before its first write. ``of_variable``: only one value is about to be replaced,
        which the caller has looked at, and the snapshot need not be watched for it."""
        taken = node.snapshot or Snapshot(node.obj, node.kind)
        if self.watch is not None and not node.is_watched and not of_variable:
            self.watch(taken)
            node.is_watched = True
        if node.snapshot is None:
            node.was_written = True
            node.snapshot = taken
        return taken

    def written(self) -> Iterator[Node]:
        """Nodes whose state may have changed, in order of first touch."""
        return (n for n in self.nodes.values() if n.snapshot is not None)

    def release(self) -> None:
        """Drop references to the program's objects, except those guarded by identity; keep what describes the graph."""
        self.assumed_internal.clear()
        self.errors.clear()
        self.class_writes.clear()
        self.advanced.clear()
        self.watch = None
        for node in self.nodes.values():
            node.release()
        for read in self.reads:
            read.expected = read.kind.released(read.expected)

    def forget(self) -> None:
        """Drop all nodes and reads."""
        self.nodes.clear()
        self.reads.clear()
        self.assumed_internal.clear()
        self.class_writes.clear()
        self.advanced.clear()

    def __str__(self) -> str:
        return printer.to_text(self.nodes.values(), self.reads)

    def __repr__(self) -> str:
        return f"<RefGraph: {len(self.nodes)} nodes, {len(self.reads)} reads>"
