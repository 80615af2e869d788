"""TorchCalls: calls into torch. The operator recorder must see each; a missed call is refused.

Key type: TorchCalls.
"""

from __future__ import annotations

from dataclasses import field
from typing import Any

import torch

from magpy_core.findings import HERE, Value
from magpy_core.knowledge import policy
from magpy_core.knowledge.torch_functions import COVERED_READS, HARMLESS
from magpy_core.monitor.events import MaybeSite
from magpy_core.recording.tracker import Tracker
from magpy_core.refgraph.kinds import is_a


class TorchCalls(Tracker):
    """The call into torch that is expected."""

    alone: bool = field(default=False, init=False)

    def missed(self) -> None:
        """The operator recorder did not see a call into torch: refuse unless it is known to be harmless."""
        assert self.context.stack.torch is not None
        site, fn = self.context.stack.torch
        self.context.stack.torch = None
        name = getattr(fn, "__name__", type(fn).__name__)
        if name in COVERED_READS or name in HARMLESS or is_a(fn, type):
            return
        self.journal.refuse(
            "MP117",
            f"{HERE} calls `{policy.shown_name(fn)}`, which reads or changes torch's state: a graph can't contain that.",
            hint="Call it before or after the region, not inside of it.",
            values=(Value("call", policy.shown_name(fn)),),
            site=site,
        )

    def expected(self, site: MaybeSite, fn: Any, args: tuple[Any, ...]) -> None:
        """The operator recorder is about to see a call into torch."""
        self.context.classes.operands(site, *args)
        self.context.stack.torch = (site, fn)

    def inside_node(self, fn: Any) -> None:
        """A call into torch inside one node, which repeats the call."""
        self.context.stack.torch = None
        if is_a(getattr(fn, "__self__", None), torch.Generator):
            self.alone = True
