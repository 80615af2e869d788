"""RandomState: reading or setting torch's random streams inside the region is refused. Key type: RandomState."""

from __future__ import annotations

import inspect
import sys
import types
from collections.abc import Callable
from typing import Any

import torch
import torch.utils.checkpoint

from magpy_core.monitor.positions import past_own_frames
from magpy_core.recording.nodes.checkpoints import Checkpoints
from magpy_core.recording.tracker import Tracker
from magpy_core.refgraph.kinds import is_a

_CHECKPOINT_FILE = torch.utils.checkpoint.__file__


class RandomState(Tracker):
    """Calls of ``torch.random``."""

    checkpoints: Checkpoints

    def call(self, site: Any, fn: Any) -> None:
        """A function of torch.random: it reads or sets a random stream."""
        if not self.ledger.ops.op_depth:
            text = f"`torch.{fn.__name__}` reads or sets a random stream inside the region."
            self.journal.refuse_call("MP106", text, site=site)

    def without_event(self, frame: Any) -> bool:
        """A frame of torch.random without a call event. The state that ``checkpoint`` keeps for its second run is not part
        of the region's computation."""
        caller = past_own_frames(sys._getframe(1))
        keeps = self.checkpoints.active() and caller is not None and caller.f_code.co_filename == _CHECKPOINT_FILE
        if not keeps and not self.ledger.ops.op_depth:
            text = f"`torch.{frame.f_code.co_name}` reads or sets a random stream inside the region."
            self.journal.refuse_call("MP106", text)
        return False


# The functions of torch.random, without their wrappers.
FRAMES: dict[Callable[..., Any], Callable[..., bool]] = {
    fn: RandomState.without_event for fn in map(inspect.unwrap, vars(torch.random).values()) if is_a(fn, types.FunctionType)
}
