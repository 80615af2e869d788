"""Modes: autocast entered inside is an operation of the graph; other changes to torch's state are refused.

Key type: Modes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from typing import Any

import torch
import torch.fx
import torch.utils.checkpoint
from torch.amp import autocast_mode

from magpy_core._compat.torch.state_changers import state_changers
from magpy_core.findings import HERE, Value
from magpy_core.knowledge.modules import ENTERS_OWN_MODES
from magpy_core.recording.tracker import Tracker

_STATE_CHANGERS = state_changers()
_SAME_SIDE = "Enter and leave it on the same side: both inside the region, or both outside."


class Modes(Tracker):
    """Handlers of torch's context managers."""

    _autocast: list[torch.fx.Node] = field(default_factory=list, init=False)

    def state_changed(self, frame: Any) -> bool:
        """A call changes torch's state, which replay can't repeat."""
        mode = type(frame.f_locals.get("mode")).__module__  # of a dispatch mode that is entered
        if not self.ledger.ops.op_depth and not mode.startswith(("magpy_core", *ENTERS_OWN_MODES)):
            name = _STATE_CHANGERS[frame.f_code]
            self.journal.refuse("MP117", f"{HERE} changes how torch works (`{name}`): a graph can't repeat that.",
                        values=(Value("call", name),), hint="Do it outside the region.")  # fmt: skip
        return False

    def autocast_enter(self, frame: Any) -> bool:
        ctx = frame.f_locals.get("self")
        if self.refgraph.node(ctx) is not None:
            self.context.arguments.read_state(ctx, self.journal.site)
        elif not self._autocast:  # the defaults of its arguments are read from torch
            for getter, about in ((torch.get_autocast_dtype, (ctx.device,)), (torch.is_autocast_cache_enabled, ())):
                self.context.settings.read(self.journal.site, getter, about, getter(*about))
        args = (ctx.device, ctx.fast_dtype, ctx._enabled, ctx._cache_enabled)
        node = self.ledger.ops.graph.call_function(autocast_mode._enter_autocast, args)
        node.meta["magpy_site"] = self.journal.site
        self._autocast.append(node)
        return False

    def autocast_exit(self, frame: Any) -> bool:
        if not self._autocast:
            text = "An autocast context entered outside the region is left inside it."
            self.journal.refuse("MP117", text, hint=_SAME_SIDE)
            return False
        self.ledger.ops.graph.call_function(autocast_mode._exit_autocast, (self._autocast.pop(),))
        return False

    def inference_enter(self, frame: Any) -> bool:
        text = "Inference mode is entered inside the region: a compiled graph would return ordinary tensors."
        self.journal.refuse("MP117", text, hint="Use `torch.no_grad()`, or enter inference mode outside the region.")
        return False

    def left_open(self) -> None:
        """At exit: refuse if a mode that was entered inside is still active."""
        if self._autocast:
            text = "An autocast context entered inside the region stays open after it."
            self.journal.refuse("MP117", text, hint=_SAME_SIDE)


FRAMES: dict[Callable[..., Any], Callable[..., bool]] = {
    torch.autocast.__enter__: Modes.autocast_enter,
    torch.autocast.__exit__: Modes.autocast_exit,
    torch.inference_mode.__enter__: Modes.inference_enter,
}
CODES = dict.fromkeys(_STATE_CHANGERS, Modes.state_changed)
