"""RandomState: reading or setting torch's random streams inside the region is refused. Key type: RandomState."""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable
from typing import Any

import torch

from magpy_core.monitor.events import MaybeSite
from magpy_core.recording.tracker import Tracker
from magpy_core.refgraph.kinds import is_a

_HINT = "Seed, save and restore the random state outside the region. Random numbers in the region continue from there."


class RandomState(Tracker):
    """Calls of ``torch.random``."""

    def call(self, site: MaybeSite, fn: Any) -> None:
        """A function of torch.random: it reads or sets a random stream."""
        if not self.ledger.ops.op_depth:
            text = f"`torch.{fn.__name__}` reads or sets the random state inside the region."
            self.journal.refuse_call("MP116", text, hint=_HINT, site=site)

    def without_event(self, frame: Any) -> bool:
        """A frame of torch.random without a call event."""
        if not self.context.pauses.in_own_code_of_checkpoint() and not self.ledger.ops.op_depth:
            text = f"`torch.{frame.f_code.co_name}` reads or sets the random state inside the region."
            self.journal.refuse_call("MP116", text, hint=_HINT)
        return False


# The functions of torch.random, without their wrappers.
FRAMES: dict[Callable[..., Any], Callable[..., bool]] = {
    fn: RandomState.without_event for fn in map(inspect.unwrap, vars(torch.random).values()) if is_a(fn, types.FunctionType)
}
