"""Interference: writes of other threads to the objects of a region during its recording.

A snapshot's difference includes their writes. If another thread has run, a recording becomes a capture only if events of its
own thread explain every change, and its guards hold at the end. Key type: Interference.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from magpy_core._compat.cpython.threads import processor_times
from magpy_core.refgraph import kinds
from magpy_core.refgraph.fields import ABSENT, instance_dict
from magpy_core.refgraph.graph import RefGraph
from magpy_core.refgraph.node import Node
from magpy_core.refgraph.snapshot import Change, slot_name


@dataclass(eq=False)
class Interference:
    """Whether other threads have run since the start, and the objects with changes that no event of this thread explains."""

    refgraph: RefGraph
    unexplained: list[str] = field(default_factory=list, init=False)
    _before: dict[int, int] | None = field(default_factory=processor_times, init=False)

    def others_ran(self) -> bool:
        now = processor_times()
        return now is None or now != self._before

    def check(self, node: Node, change: Change) -> None:
        """Add ``node`` to ``unexplained`` unless events have shown that the region made this change."""
        if change.op == "del_attr" and self._is_kept_elsewhere(node, change.key):
            return
        if not any(written.explains(change) for written in (node, *self._same_table(node))):
            self.unexplained.append(node.source.describe())

    def _is_kept_elsewhere(self, node: Node, name: str) -> bool:
        """Whether the attribute is absent because its class stored the assigned value in another table (a module in its
        buffers). Otherwise another thread may have deleted it."""
        if node.snapshot is None or name in (node.snapshot.attrs or {}) or name not in node.noted:
            return False
        value = node.noted[name]
        others = (other for other in self.refgraph.written() if other is not node)
        return any(other.noted.get(slot_name(name), ABSENT) is value for other in others)

    def _same_table(self, node: Node) -> list[Node]:
        """The node of an object's ``__dict__``, or of the object that a ``__dict__`` belongs to: events name either."""
        if node.kind == kinds.DICT:
            owner = node.source.base if node.source.kind == "dict" else None
            return [other for other in self.refgraph.written() if other.source is owner]
        table = instance_dict(node.obj)
        found = None if table is None else self.refgraph.node(table)
        return [] if found is None else [found]
