"""ParallelCalls: calls of DistributedDataParallel modules in a region; their communication becomes part of the graph.

Key type: ParallelCalls.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import field
from typing import Any

import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from magpy_core._compat.torch import data_parallel
from magpy_core.findings import HERE
from magpy_core.opgraph.recorder import record_call, unrecorded
from magpy_core.recording.tracker import Tracker


class ParallelCalls(Tracker):
    """Handlers of the frames of ``DistributedDataParallel``."""

    _copied: list[DistributedDataParallel] = field(default_factory=list, init=False)
    """Those in a call that has copied its buffers."""

    def called(self, frame: Any) -> bool:
        """DistributedDataParallel inside the region: its communication becomes part of the graph."""
        module = frame.f_locals.get("self")
        replicas = self.ledger.ops.leaves.replicas
        if self.ledger.ops.op_depth or self.context.pauses.in_checkpoint:  # the call may be repeated
            replicas.cannot_record = True
            text = f"{HERE} calls a DistributedDataParallel module inside one operation."
            self.journal.refuse("MP119", text, hint="Call the wrapped module there: `model.module(x)`.")
            return False
        for name in data_parallel.fields_read(module):
            self.context.reads.attr(module, name, None)  # not worth a finding each
        for name in data_parallel.HOLDERS:
            self.context.reads.attr(module, name, None)
            self.context.arguments.read(None, (vars(module)[name],), {})
        if not hasattr(module, data_parallel.BUFFER_HOOK):
            self.context.reads.attr(module, data_parallel.BUFFER_HOOK, None)
        self.context.reads.module_member(module, "module", self.journal.site)
        with unrecorded(self.ledger.ops):
            reason = data_parallel.reason_to_refuse(module)
        if reason is not None:
            replicas.cannot_record = True
            text = f"{HERE} calls a DistributedDataParallel module whose communication can't be part of the graph: {reason}."
            self.journal.refuse_call("MP119", text, hint="Compile the wrapper itself, or the module inside it.")
        elif not data_parallel.is_arranged(module):
            replicas.cannot_record = True
            self.journal.skip_call("DistributedDataParallel has not yet arranged the gradients")
            self.journal.graph_incomplete = True  # the gradients of this call are not recorded
        else:
            self._communicate(module)
        return False

    def _communicate(self, module: DistributedDataParallel) -> None:
        """Record what a DistributedDataParallel module does at the beginning of a call. The backward pass does the rest."""
        ops, fields = self.ledger.ops, vars(module)
        self.context.reads.attr(module, "process_group", self.journal.site)
        if data_parallel.copies_buffers(module):
            self._read_buffers(module.module)
        with unrecorded(self.ledger.ops):
            copies = data_parallel.copies_buffers(module)
            replica = ops.leaves.replicas.of(module) or data_parallel.replica(module)
        learns = bool(fields[data_parallel.SYNCS_GRADIENTS]) and torch.is_grad_enabled()
        record = functools.partial(record_call, ops)
        if (node := self.refgraph.node(module)) is not None:
            self.refgraph.snapshot(node)  # before its fields are replaced for a while
        if fields[data_parallel.SYNCS_BUFFERS] is not learns:  # the call sets it when it ends
            self.context.writes.attr(module, data_parallel.SYNCS_BUFFERS, self.journal.site, learns, native=True)
        ops.leaves.replicas.called(replica, record, learns=learns, copies_buffers=copies)
        self.ledger.undo.append(ops.leaves.replicas.run_hooks)
        if copies:  # done
            fields[data_parallel.SYNCS_BUFFERS] = False
            self._copied.append(module)
            self.ledger.undo.append(self._calls_raised)

    def _calls_raised(self) -> None:
        """A call that raises leaves this field as it was."""
        for module in self._copied:
            vars(module)[data_parallel.SYNCS_BUFFERS] = True
        self._copied = []

    def _read_buffers(self, module: nn.Module) -> None:
        for table in ("_buffers", "_modules"):
            for name, value in vars(module)[table].items():
                if value is not None:
                    self.context.reads.module_member(module, name, self.journal.site)
                if table == "_modules" and value is not None:
                    self._read_buffers(value)

    def prepares(self, frame: Any) -> bool:
        """What DistributedDataParallel does before and after the call of the module in it, for its hooks."""
        if frame.f_code is data_parallel.AFTER.__code__:
            self._copied = [module for module in self._copied if module is not frame.f_locals.get("self")]
        if self.context.pauses.code is None:
            self.context.pauses.code = frame.f_code
        return False

    def calls_module(self, frame: Any) -> bool:
        """DistributedDataParallel notes which module runs, and calls it."""
        self.context.functions.guard(data_parallel.NOTES_MODULE)  # its frame is monitored, and reads cells
        return False


FRAMES: dict[Callable[..., Any], Callable[..., bool]] = {
    data_parallel.CALL: ParallelCalls.called,
    data_parallel.BEFORE: ParallelCalls.prepares,
    data_parallel.AFTER: ParallelCalls.prepares,
    **dict.fromkeys(data_parallel.CALLS_MODULE, ParallelCalls.calls_module),
}
