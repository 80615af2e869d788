"""RandomState: TODO."""

from __future__ import annotations

import sys
import types
from typing import TYPE_CHECKING, Any

import torch
import torch.fx
import torch.utils.checkpoint

from magpy_core.monitor.record import is_own_file
from magpy_core.recording.journal import Journal
from magpy_core.recording.ledger import Ledger

if TYPE_CHECKING:
    from magpy_core.recording.groups import Nodes

_FILE = torch.utils.checkpoint.__file__


class RandomState:
    """TODO."""

    def __init__(self, ledger: Ledger, journal: Journal, nodes: Nodes) -> None:
        self.ledger = ledger
        self.journal = journal
        self.nodes = nodes
        self.refgraph, self.sources = ledger.refgraph, ledger.sources

    def frame(self, frame: Any) -> bool:
        """The state that ``checkpoint`` keeps for its second run is no part of what the region computes."""
        caller: types.FrameType | None = sys._getframe(1)
        while caller is not None and is_own_file(caller.f_code.co_filename):
            caller = caller.f_back
        if self.nodes.checkpoints._begun and caller is not None and caller.f_code.co_filename == _FILE:
            return False
        return super().random_state(frame)

    def call(self, site: Any, fn: Any) -> None:
        """A function of torch.random: it reads or sets a random stream."""
        if not self.ledger.ops.op_depth and self.nodes.one_node.active is None:
            self.journal.refuse_call(
                "MP106", f"`torch.{fn.__name__}` reads or sets a random stream inside the region.", site=site
            )

    def frame(self, frame: Any) -> bool:
        """A frame of torch.random that no call event announced."""
        if not self.ledger.ops.op_depth:
            name = frame.f_code.co_name
            self.journal.refuse_call("MP106", f"`torch.{name}` reads or sets a random stream inside the region.")
        return False
