"""Checkpoints: operations under ``torch.utils.checkpoint`` are marked, so that the backward pass recomputes them.

A function with side effects, which the backward pass would repeat, is refused.

Key type: Checkpoints.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from types import CodeType
from typing import Any

import torch
import torch.fx

from magpy_core._compat.torch.checkpoint_calls import CALLS_THE_FUNCTION
from magpy_core._compat.torch.dynamo import disabled_version
from magpy_core.findings import HERE
from magpy_core.monitor.events import MaybeSite
from magpy_core.opgraph.segments import CHECKPOINT, GIVEN
from magpy_core.recording.age import Existing
from magpy_core.recording.tracker import Tracker
from magpy_core.refgraph.kinds import is_a

_OPTIONS = ("context_fn", "debug", "determinism_check", "respect_saved_tensors_hooks")


@dataclass
class _Begun:
    """A call of ``checkpoint`` in progress: the last node and the number of effects when it began."""

    site: MaybeSite
    last: torch.fx.Node | None
    done: tuple[int, ...]
    args: tuple[Any, ...]


class Checkpoints(Tracker):
    """Calls of ``checkpoint``."""

    _count: int = field(default=0, init=False)
    _begun: list[_Begun] = field(default_factory=list, init=False)

    def begin(self, site: MaybeSite, fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """``checkpoint(fn, *args)`` is about to run."""
        if self._begun:  # it would run hooks of the outer one, with another grad mode
            self.journal.refuse("MP107", f"{HERE} nests one checkpoint inside another: MagPy can't record that.", site=site)
        elif kwargs.get("use_reentrant") is not False or kwargs.get("preserve_rng_state", True) is not True:
            text = f"{HERE} uses a kind of checkpointing that a graph can't repeat."
            hint = "Pass `use_reentrant=False`, and keep `preserve_rng_state=True`."
            self.journal.refuse("MP107", text, hint=hint, site=site)
        elif unknown := [name for name in _OPTIONS if name in kwargs]:
            self.journal.refuse("MP107", f"{HERE} passes `{unknown[0]}`: a graph can't contain that.", site=site)
        if (called := disabled_version(fn)) is not None:
            self.context.functions.guard(called)  # its frame is monitored, and reads cells
        last = next(iter(reversed(self.ledger.ops.graph.nodes)), None)
        begun = _Begun(site, last, self._done(), args[1:])
        if not self._begun:
            self.context.writes.existing = Existing()
            self.context.pauses.in_checkpoint = True
        self._begun.append(begun)
        self.context.stack.on_return(lambda result: self._returned(begun, result))

    def starts(self, frame: Any) -> bool:
        """The frame starts that calls a checkpoint's function. Without an event before it, a library has called it, or
        the program what it decorates: nothing has been marked for the backward pass."""
        if not self._begun and not self.ledger.ops.op_depth and not self.journal.refused:
            text = f"{HERE} calls a function that `checkpoint` decorates, or a library does: MagPy can't record that."
            self.journal.refuse("MP107", text, hint="Call `checkpoint(function, ...)` inside the region.")
        return False

    def _done(self) -> tuple[int, ...]:
        ledger = self.ledger
        done = len(ledger.outputs), len(ledger.field_writes), len(ledger.draws), ledger.other_effects
        return self.context.writes.events, *done

    def _returned(self, begun: _Begun, result: Any) -> Any:
        del self._begun[self._begun.index(begun) :]  # also removes inner checkpoints that raised
        if self._done() != begun.done:
            text = f"{HERE} checkpoints a function with side effects: the backward pass would repeat them."
            hint = "Move writes, prints and random numbers out of the checkpointed function."
            self.journal.refuse("MP107", text, hint=hint, site=begun.site)
        if self._begun:
            return result  # part of the outer one
        self.context.writes.existing = None
        self.context.pauses.in_checkpoint = False
        nodes = list(self.ledger.ops.graph.nodes)
        start = nodes.index(begun.last) + 1 if begun.last is not None else 0
        self._count += 1
        for tensor in begun.args:
            if is_a(tensor, torch.Tensor) and (node := self.ledger.ops.values.node(tensor)) is not None:
                node.meta[GIVEN] = {*node.meta.get(GIVEN, ()), self._count}
        for node in nodes[start:]:
            if node.op != "placeholder":
                node.meta[CHECKPOINT] = self._count
        return result


CODES: dict[CodeType, Callable[..., bool]] = {CALLS_THE_FUNCTION: Checkpoints.starts}
