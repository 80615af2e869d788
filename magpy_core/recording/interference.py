"""Interference: what other threads did to the objects of a region while it was recorded.

A snapshot's difference has their writes too. Where one has run meanwhile, a capture is only made of a recording whose every
change an event of its own thread explains, and whose guards hold at its end. Key type: Interference.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from magpy_core._compat.cpython.threads import processor_times
from magpy_core.refgraph import kinds
from magpy_core.refgraph.fields import instance_dict
from magpy_core.refgraph.graph import RefGraph
from magpy_core.refgraph.node import Node
from magpy_core.refgraph.snapshot import Change


@dataclass(eq=False)
class Interference:
    """Whether other threads have run since this was made, and what no event of the recording's own thread explains."""

    refgraph: RefGraph
    unexplained: list[str] = field(default_factory=list, init=False)
    _before: dict[int, int] | None = field(default_factory=processor_times, init=False)

    def others_ran(self) -> bool:
        now = processor_times()
        return now is None or now != self._before

    def check(self, node: Node, change: Change) -> None:
        """Note ``node`` unless events have shown that the region made this change."""
        if change.op == "del_attr" and node.snapshot is not None and change.key not in (node.snapshot.attrs or {}):
            return  # its class keeps it elsewhere (a module its buffers): nothing has changed here
        if not any(written.explains(change) for written in (node, *self._same_table(node))):
            self.unexplained.append(node.source.describe())

    def _same_table(self, node: Node) -> list[Node]:
        """The node of an object's ``__dict__``, or of the object whose ``__dict__`` it is: events name one of the two."""
        if node.kind == kinds.DICT:
            owner = node.source.base if node.source.kind == "dict" else None
            return [other for other in self.refgraph.written() if other.source is owner]
        table = instance_dict(node.obj)
        found = None if table is None else self.refgraph.node(table)
        return [] if found is None else [found]
