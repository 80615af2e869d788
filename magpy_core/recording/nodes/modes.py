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
from magpy_core.recording.outside import Outside
from magpy_core.recording.tracker import Tracker

_STATE_CHANGERS = state_changers()


class Modes(Tracker):
    """Handlers of torch's context managers."""

    outside: Outside
    _autocast: list[torch.fx.Node] = field(default_factory=list, init=False)

    def state_changed(self, frame: Any) -> bool:
        """What torch does is not the same from here on, and no replay would change it so."""
        mode = type(frame.f_locals.get("mode")).__module__  # that a dispatch mode is put in force with
        if not self.ledger.ops.op_depth and not mode.startswith(
            ("magpy_core", "torch._subclasses", "torch.utils.checkpoint")
        ):
            name = _STATE_CHANGERS[frame.f_code]
            self.journal.refuse("MP106", f"{HERE} changes how torch works (`{name}`), which no graph can repeat.",
                        values=(Value("call", name),), hint="Do it around the region.")  # fmt: skip
        return False

    def autocast_enter(self, frame: Any) -> bool:
        ctx = frame.f_locals.get("self")
        if self.refgraph.node(ctx) is not None:
            self.access.arguments.read_state(ctx, self.journal.site)
        elif not self._autocast:  # arguments that were not given are read from torch
            for getter, about in ((torch.get_autocast_dtype, (ctx.device,)), (torch.is_autocast_cache_enabled, ())):
                self.facts.settings.read(self.journal.site, getter, about, getter(*about))
        args = (ctx.device, ctx.fast_dtype, ctx._enabled, ctx._cache_enabled)
        node = self.ledger.ops.graph.call_function(autocast_mode._enter_autocast, args)
        node.meta["magpy_site"] = self.journal.site
        self._autocast.append(node)
        return False

    def autocast_exit(self, frame: Any) -> bool:
        if not self._autocast:
            self.journal.refuse("MP106", "An autocast context entered outside the region is left inside it.")
            return False
        self.ledger.ops.graph.call_function(autocast_mode._exit_autocast, (self._autocast.pop(),))
        return False

    def inference_enter(self, frame: Any) -> bool:
        text = "Inference mode is entered inside the region: a compiled graph would give ordinary tensors."
        self.journal.refuse("MP106", text, hint="Use `torch.no_grad()`, or enter it around the region.")
        return False

    def left_open(self) -> None:
        """At exit: every mode that was entered inside must have been left."""
        if self._autocast:
            self.journal.refuse("MP106", "An autocast context entered inside the region stays open after it.")


FRAMES: dict[Callable[..., Any], Callable[..., bool]] = {
    torch.autocast.__enter__: Modes.autocast_enter,
    torch.autocast.__exit__: Modes.autocast_exit,
    torch.inference_mode.__enter__: Modes.inference_enter,
}
CODES = dict.fromkeys(_STATE_CHANGERS, Modes.state_changed)
