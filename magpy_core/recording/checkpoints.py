"""CheckpointEvents: ``torch.utils.checkpoint`` inside the region: operations of the graph like any, marked as one stretch.

In the backward pass the program runs the function again, and a replay the recorded operations. What the function does
besides operations (a counter, a print, Python's random numbers) would happen again there: such a function is refused.
Key type: CheckpointEvents.
"""

from __future__ import annotations

import gc
import sys
import types
from dataclasses import dataclass
from typing import Any

import torch.fx
import torch.utils.checkpoint

from magpy_core._compat.torch.dynamo import disabled_version
from magpy_core.findings import HERE
from magpy_core.monitor import policy
from magpy_core.monitor.record import is_own_file
from magpy_core.opgraph.checkpoints import CHECKPOINT, GIVEN
from magpy_core.recording.scripts import ScriptEvents
from magpy_core.refgraph import kinds
from magpy_core.refgraph.graph import Node
from magpy_core.refgraph.kinds import is_a

_FILE = torch.utils.checkpoint.__file__


@dataclass
class _Begun:
    """A call of ``checkpoint`` in progress: where the graph ended, and what the program had done, when it began."""

    site: Any
    last: torch.fx.Node | None
    done: tuple[int, ...]
    args: tuple[Any, ...]
    before: set[int]  # ids of what the region had made by then


class CheckpointEvents(ScriptEvents):
    """Calls of ``torch.utils.checkpoint.checkpoint``."""

    _checkpoints: list[_Begun]
    _write_events = 0
    _checkpoint_count = 0

    def mark_written(self, node: Node, site: Any) -> None:
        self._write_events += 1
        super().mark_written(node, site)

    # Writes to what the region has made are no effects, but one that the second run would make again is.

    def _changes(self, obj: Any) -> None:
        if self._checkpoints and id(obj) in self._checkpoints[0].before:
            self._write_events += 1

    def writing(self, obj: Any, site: Any) -> Node | None:
        self._changes(obj)
        return super().writing(obj, site)

    def cell_write(self, site: Any, cell: Any, value: Any) -> None:
        self._changes(cell)
        super().cell_write(site, cell, value)

    def container_method(self, site: Any, obj: Any, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        if name not in policy.READ_METHODS and name not in policy.KEYED_READS:
            self._changes(obj)
        super().container_method(site, obj, name, args, kwargs)

    def binary(self, site: Any, lhs: Any, rhs: Any) -> None:
        if self._checkpoints and (site.name or "").endswith("=") and kinds.kind_of(lhs) in kinds.CONTAINERS:
            self._changes(lhs)
        super().binary(site, lhs, rhs)

    def _done(self) -> tuple[int, ...]:
        return (self._write_events, len(self.outputs), len(self.field_writes), len(self.draws), len(self._cached))

    def call_python(self, site: Any, fn: types.FunctionType, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        if fn is torch.utils.checkpoint.checkpoint and not self.ops.op_depth:
            if (
                self._checkpoints
            ):  # what it keeps there runs hooks of the one around it, whose gradient mode is not the program's
                self.refuse("MP107", f"{HERE} checkpoints a part of what is checkpointed already.", site=site)
            elif kwargs.get("use_reentrant") is not False or kwargs.get("preserve_rng_state", True) is not True:
                text = f"{HERE} checkpoints in a way that a graph can't repeat."
                self.refuse("MP107", text, hint="Pass `use_reentrant=False`, and let it keep the random state.", site=site)
            elif odd := [name for name in ("context_fn", "debug", "determinism_check") if name in kwargs]:
                self.refuse("MP107", f"{HERE} is given `{odd[0]}`, which a graph can't keep.", site=site)
            if (called := disabled_version(fn)) is not None:
                self.function_fact(called)  # its frame is seen, and the cells that it reads
            last = next(iter(reversed(self.ops.graph.nodes)), None)
            self._checkpoints.append(_Begun(site, last, self._done(), args[1:], {id(o) for o in gc.get_objects(0)}))
        super().call_python(site, fn, args, kwargs)

    def call_result(self, site: Any, result: Any) -> Any:
        for i in range(len(self._checkpoints) - 1, -1, -1):
            if self._checkpoints[i].site is site:
                begun = self._checkpoints[i]
                del self._checkpoints[i:]  # calls inside that raised left theirs
                self._checkpointed(begun)
                break
        return super().call_result(site, result)

    def _checkpointed(self, begun: _Begun) -> None:
        if self._done() != begun.done:
            text = f"{HERE} checkpoints a function that does more than compute: the backward pass would do that again."
            hint = "Move what it counts, prints or draws out of the checkpointed function."
            self.refuse("MP107", text, hint=hint, site=begun.site)
        if self._checkpoints:
            return  # part of the one around it
        nodes = list(self.ops.graph.nodes)
        start = nodes.index(begun.last) + 1 if begun.last is not None else 0
        self._checkpoint_count += 1
        for tensor in begun.args:
            if is_a(tensor, torch.Tensor) and (known := self.ops.values.get(id(tensor))) is not None:
                known[1].meta[GIVEN] = {*known[1].meta.get(GIVEN, ()), self._checkpoint_count}
        for node in nodes[start:]:
            if node.op != "placeholder":
                node.meta[CHECKPOINT] = self._checkpoint_count

    def random_state(self, frame: Any) -> bool:
        """The state that ``checkpoint`` keeps for its second run is no part of what the region computes."""
        caller: types.FrameType | None = sys._getframe(1)
        while caller is not None and is_own_file(caller.f_code.co_filename):
            caller = caller.f_back
        if self._checkpoints and caller is not None and caller.f_code.co_filename == _FILE:
            return False
        return super().random_state(frame)
