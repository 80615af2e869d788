"""Writes: what operations change in place, and through which graph inputs the program sees it. Key type: Writes."""

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


@dataclass(eq=False)
class Writes:
    """``mutated``, by id: tensors from outside that were written. ``first``: the first operation that changed one."""

    host: Host
    inputs: GraphInputs
    mutated: dict[int, tuple[torch.Tensor, Source]] = field(default_factory=dict)
    first: torch.fx.Node | None = None
    _memory: set[int] = field(default_factory=set)

    def has_touched(self, tensor: torch.Tensor) -> bool:
        """Whether an operation has written the memory of ``tensor``."""
        return storage_key(tensor) in self._memory

    def prepare(self, tensors: list[torch.Tensor]) -> None:
        """An operation is about to write in place; inference tensors among those that it takes count no changes."""
        uncounted = [t for t in tensors if t.is_inference()]
        if any(id(t) in self.inputs.guarded or is_view(t) for t in uncounted):
            raise Unsupported("MP106", f"{HERE} changes an inference tensor from outside, of which no guard can tell.")
        self._memory.update(map(storage_key, uncounted))

    def guard_history(self, written: list[Any]) -> bool:
        """Autograd forbids writes to leaves and to some views: whether these tensors from outside are any is guarded.
        Returns whether a view is written, made by some operation or of a leaf: then the write may raise."""
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
        self._memory.add(memory)
        for t, source in list(self.inputs.guarded.values()):
            if id(t) in self.mutated:
                if t is tensor:
                    self.host.tensor_written(t, source)  # again: for the finding at this line
            elif t is tensor or (memory and storage_key(t) == memory):
                self.mutated[id(t)] = (t, source)
                self.first = self.first or node
                self.host.tensor_written(t, source)

    def check_layout(self, name: str, written: torch.Tensor, tensors: list[torch.Tensor]) -> None:
        """Refuse a write after which compiled code would go on with other strides: a compiler makes a new tensor of each
        write, and everything computed from one with other strides has others too, and draws go to other elements."""
        if written.layout is not torch.strided or written.is_contiguous():
            return
        plain = name.removeprefix("_foreach_").strip("_")
        masked = plain in ("setitem", "index_put") and any(t.dtype is torch.bool for t in tensors if t is not written)
        if plain not in _KEEPS_LAYOUT or masked:
            text = f"{HERE} writes a tensor that isn't contiguous: compiled, what follows would be laid out otherwise."
            self.host.refuse("MP902", text, site=self.host.site)
