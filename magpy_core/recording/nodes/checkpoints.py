"""Checkpoints: TODO."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
import torch.fx
import torch.utils.checkpoint

from magpy_core.findings import HERE
from magpy_core.opgraph.checkpoints import CHECKPOINT, GIVEN
from magpy_core.recording.calls.python import _Begun
from magpy_core.recording.journal import Journal
from magpy_core.recording.ledger import Ledger
from magpy_core.refgraph.kinds import is_a

if TYPE_CHECKING:
    from magpy_core.recording.groups import Access, Nodes


class Checkpoints:
    """TODO."""

    def __init__(self, ledger: Ledger, journal: Journal, access: Access, nodes: Nodes) -> None:
        self.ledger = ledger
        self.journal = journal
        self.access = access
        self.nodes = nodes
        self.refgraph, self.sources = ledger.refgraph, ledger.sources
        self._count = 0
        self._begun = []

    def _done(self) -> tuple[int, ...]:
        return (
            self.access.writes.events,
            len(self.ledger.outputs),
            len(self.ledger.field_writes),
            len(self.ledger.draws),
            len(self.nodes.caches._asked),
        )

    def returned(self, begun: _Begun) -> None:
        if self._done() != begun.done:
            text = f"{HERE} checkpoints a function that does more than compute: the backward pass would do that again."
            hint = "Move what it counts, prints or draws out of the checkpointed function."
            self.journal.refuse("MP107", text, hint=hint, site=begun.site)
        if self._begun:
            return  # part of the one around it
        nodes = list(self.ledger.ops.graph.nodes)
        start = nodes.index(begun.last) + 1 if begun.last is not None else 0
        self._count += 1
        for tensor in begun.args:
            if is_a(tensor, torch.Tensor) and (known := self.ledger.ops.values.get(id(tensor))) is not None:
                known[1].meta[GIVEN] = {*known[1].meta.get(GIVEN, ()), self._count}
        for node in nodes[start:]:
            if node.op != "placeholder":
                node.meta[CHECKPOINT] = self._count
