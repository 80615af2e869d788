"""Writes: what operations change in place, and which graph inputs share the changed memory. Key type: Writes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch
import torch.fx

from magpy_core._compat.torch.tensor_guards import is_view, storage_key
from magpy_core.findings import HERE, Unsupported
from magpy_core.knowledge.operators import Fact, named
from magpy_core.opgraph.host import Host
from magpy_core.opgraph.inputs import GraphInputs
from magpy_core.opgraph.values import tensors_in
from magpy_core.refgraph.source import Source

_KEEPS_LAYOUT = named(Fact.KEEPS_LAYOUT)
_KEEPS_EQUAL_LAYOUT = named(Fact.KEEPS_EQUAL_LAYOUT)


@dataclass(eq=False)
class Writes:
    """``mutated``, by id: tensors from outside that were written; ``operations``: those that changed each.
    ``drew_random``: an operation has changed the state of a random generator. ``taken``: memory of results that tensors from
    outside have been moved to, by ``x.data = result``."""

    host: Host
    inputs: GraphInputs
    mutated: dict[int, tuple[torch.Tensor, Source]] = field(default_factory=dict)
    operations: dict[int, list[torch.fx.Node]] = field(default_factory=dict)
    drew_random: bool = False
    taken: set[int] = field(default_factory=set)
    _memory: set[int] = field(default_factory=set)

    def has_touched(self, tensor: torch.Tensor) -> bool:
        """Whether an operation has written the memory of ``tensor``."""
        return storage_key(tensor) in self._memory

    def prepare(self, tensors: list[torch.Tensor]) -> None:
        """Prepare for an in-place operation: inference tensors among its arguments don't count versions."""
        uncounted = [t for t in tensors if t.is_inference()]
        if any(id(t) in self.inputs.guarded or is_view(t) for t in uncounted):
            text = f"{HERE} changes an outside inference tensor: MagPy can't see such changes."
            raise Unsupported("MP106", text, hint="Create it under `torch.no_grad()`, not `torch.inference_mode()`.")
        self._memory.update(map(storage_key, uncounted))

    def guard_history(self, written: list[Any]) -> bool:
        """Guard on whether the written tensors from outside are leaves or views: autograd forbids writes to leaves and to
        some views. Returns whether a view is written, so that the write may raise."""
        memory = {storage_key(t) for t in tensors_in(written) if t.requires_grad}
        of_view = False
        for t, source in list(self.inputs.guarded.values()) if memory else ():
            if t.requires_grad and storage_key(t) in memory and id(t) not in self.mutated:
                self.host.guard_field(source, t, "is_leaf", t.is_leaf)
                if t._base is None:
                    self.host.guard_field(source, t, "_base", None)
                else:
                    of_view = True
        return of_view

    def record(self, tensor: torch.Tensor, node: torch.fx.Node) -> None:
        """``node`` changed ``tensor`` in place, and with it every graph input that shares its memory."""
        memory = storage_key(tensor)
        if memory in self.taken:
            text = f"{HERE} changes a tensor in place whose `.data` was assigned in the region."
            raise Unsupported("MP106", text, hint="Compute the new values first, and assign them once.")
        self._memory.add(memory)
        for t, source in list(self.inputs.guarded.values()):
            if t is not tensor and not (memory and storage_key(t) == memory):
                continue
            self.operations.setdefault(id(t), []).append(node)
            if t is tensor or id(t) not in self.mutated:  # reported again, for the finding at this line
                self.host.tensor_written(t, source)
            self.mutated[id(t)] = (t, source)

    def check_layout(self, name: str, written: torch.Tensor, tensors: list[torch.Tensor], lists: int) -> None:
        """Refuse a write after which compiled code would continue with other strides: a compiler turns each write into a new
        tensor, whose strides spread to all later results, so that random numbers go to other elements. ``lists``: how many
        of the call's arguments are lists, whose ``tensors`` are used together one by one."""
        if written.layout is not torch.strided or written.is_contiguous():
            return
        plain = name.removeprefix("_foreach_").strip("_")
        masked = plain in ("setitem", "index_put") and any(t.dtype is torch.bool for t in tensors if t is not written)
        if plain in _KEEPS_EQUAL_LAYOUT and _are_laid_out_alike(written, tensors, lists):
            return
        if plain not in _KEEPS_LAYOUT or masked:
            text = f"{HERE} writes a tensor that isn't contiguous; compiled code would change the strides of later results."
            hint = "Make it contiguous before, or what it is made from: `mask = mask.contiguous()`."
            self.host.refuse("MP916", text, hint=hint, site=self.host.site)


def _are_laid_out_alike(written: torch.Tensor, tensors: list[torch.Tensor], lists: int) -> bool:
    """Whether the tensors that are used together with the ``written`` one have its sizes and strides."""
    if lists:
        number, others = divmod(len(tensors), lists)
        if others:
            return False
        places = {i % number for i, one in enumerate(tensors) if one is written}
        tensors = [one for i, one in enumerate(tensors) if i % number in places]
    return all(one.stride() == written.stride() and one.shape == written.shape for one in tensors if one.dim())
