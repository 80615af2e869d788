"""Replicas: modules under DistributedDataParallel in a region, whose communication becomes operations of the graph.

Their hooks in C++ belong to nodes of autograd that a recorded backward pass does not run. Key type: Replicas.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
import torch.fx

from magpy_core._compat.torch.data_parallel import (
    Idle,
    Replica,
    all_reduced,
    broadcast,
    disable_hooks,
    group_of,
    restore_hooks,
)
from magpy_core._compat.torch.operators_trace import after
from magpy_core.findings import HERE, Unsupported

#: Runs one torch call of ours as if the program had made it.
Record = Callable[[Callable[..., Any], Any, tuple[Any, ...], dict[str, Any]], Any]
_GRAD: Any = torch.Tensor.grad


def communicates(node: torch.fx.Node) -> bool:
    """Whether a node is a collective, which can't be undone."""
    return group_of(node.target, node.args, node.kwargs) is not None


def groups_in(graph: torch.fx.Graph) -> tuple[str, ...]:
    """The groups of processes in which a graph communicates."""
    groups = (group_of(node.target, node.args, node.kwargs) for node in graph.nodes)
    return tuple(dict.fromkeys(group for group in groups if group is not None))


@dataclass(eq=False)
class Replicas:
    """``waiting``: those that have been called and not differentiated since; ``parameters``: of all that were called.
    ``cannot_record``: one was called whose hooks have to run."""

    waiting: list[Replica] = field(default_factory=list)
    parameters: set[int] = field(default_factory=set)
    cannot_record: bool = False
    _disabled: list[tuple[Replica, Idle]] = field(default_factory=list)
    _last: torch.Tensor | None = None
    """The result of the last collective: all processes must run them in one order."""

    def called(self, replica: Replica, record: Record, *, learns: bool, copies_buffers: bool) -> None:
        """A module is about to be called. ``learns``: its next backward pass averages gradients."""
        for buffers in replica.buffers if copies_buffers else ():
            with torch.no_grad():
                self._together(buffers, broadcast, replica.group, record)
        if self.of(replica.module) is None:
            self._disabled.append((replica, disable_hooks(replica)))
        if learns:
            self.waiting = [*(known for known in self.waiting if known.module is not replica.module), replica]
            self.parameters.update(id(p) for bucket in replica.buckets for p in bucket)

    def of(self, module: Any) -> Replica | None:
        """The replica of a module whose hooks are disabled."""
        return next((replica for replica, _ in self._disabled if replica.module is module), None)

    def run_hooks(self) -> None:
        """A backward pass is about to run that is not recorded, or may run after the region."""
        for replica, idle in self._disabled:
            restore_hooks(replica, idle)
        self._disabled, self.waiting = [], []

    def check(self, leaves: Collection[torch.Tensor]) -> None:
        """A backward pass to ``leaves`` is about to run. Raises Unsupported where it would not average as the module
        does."""
        if self.cannot_record:
            raise Unsupported("", "reported where the module was called")
        reached, several = {id(leaf) for leaf in leaves}, 0
        for replica in self.waiting:
            own = {id(p) for bucket in replica.buckets for p in bucket}
            several += bool(reached & own)
            if several > 1:  # their hooks run in the order in which gradients arrive
                text = f"{HERE} differentiates several DistributedDataParallel modules at once."
                raise Unsupported("MP119", text, hint="Wrap one module that contains both, and call that.")
            if reached & own and not own <= reached:
                text = f"{HERE} leaves parameters of a DistributedDataParallel module without a gradient."
                raise Unsupported("MP119", text, hint="Freeze what isn't trained: `parameter.requires_grad_(False)`.")
            reached -= own
        if reached & self.parameters:
            text = f"{HERE} differentiates a DistributedDataParallel module a second time after it was called."
            raise Unsupported("MP119", text, hint="Add up the losses, and differentiate their sum.")

    def average(self, leaves: Collection[torch.Tensor], record: Record) -> None:
        """The gradients of ``leaves`` have been accumulated: average those of replicas over the processes."""
        reached = {id(leaf) for leaf in leaves}
        for replica in [r for r in self.waiting if id(r.buckets[0][0]) in reached]:
            self.waiting.remove(replica)
            for known, idle in self._disabled:
                idle.is_due = idle.is_due and known.module is not replica.module
            for bucket in replica.buckets:
                gradients = [record(_GRAD.__get__, (), (parameter,), {}) for parameter in bucket]
                self._together(gradients, all_reduced, replica.group, record, scale=1.0 / replica.processes)

    def _together(
        self, tensors: Sequence[torch.Tensor], collective: Callable[..., Any], group: str, record: Record, scale: float = 1.0
    ) -> None:
        """Run a collective on ``tensors`` as one, and write its result to them."""
        flat = record(torch.cat, (), ([record(torch.Tensor.reshape, (), (t, (-1,)), {}) for t in tensors],), {})
        if scale != 1.0:
            flat = record(torch.mul, (), (flat, scale), {})
        if self._last is not None:
            flat = record(after, (), (flat, self._last), {})
        self._last = flat = record(collective, (), (flat, group), {})
        parts = record(torch.split, (), (flat, [t.numel() for t in tensors]), {})
        for tensor, part in zip(tensors, parts, strict=True):
            record(torch.Tensor.copy_, (), (tensor, record(torch.Tensor.view, (), (part, tuple(tensor.shape)), {})), {})
