"""What a program assigns to a tensor itself: its memory (`.data`) and whether it requires a gradient.

Guards speak of a tensor as it was when the region began, so what it was is kept. Key type: Assigned, a part of OpRecorder.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.fx

from magpy_core._compat.torch.autograd import is_view
from magpy_core._compat.torch.tensor_guards import no_torch_function
from magpy_core.findings import HERE, Unsupported
from magpy_core.opgraph.made import as_it_is
from magpy_core.refgraph.kinds import is_a
from magpy_core.refgraph.source import Source


class Assigned:
    """Assignments to tensors, and what guards and an undo must know of tensors from outside as they were."""

    host: Any
    graph: torch.fx.Graph
    guarded: dict[int, tuple[torch.Tensor, Source]]
    reshaped_leaf = False
    """Whether a tensor that requires a gradient has just been given memory of another shape."""
    entry_memory: dict[int, torch.Tensor]
    entry_history: dict[int, tuple[bool, Any]]
    """Of tensors from outside, by id: whether each required a gradient, and what it was computed by."""

    def to_fx(self, value: Any) -> Any:
        raise NotImplementedError

    def keep_history(self, tensor: torch.Tensor) -> None:
        """A tensor from outside is met for the first time: how it stands with autograd."""
        with no_torch_function():
            self.entry_history[id(tensor)] = (tensor.requires_grad, tensor.grad_fn)

    def _keep_as_it_is(self, tensor: torch.Tensor) -> None:
        if id(tensor) not in self.entry_memory:
            flag = self.entry_history.get(id(tensor), (tensor.requires_grad,))[0]
            self.entry_memory[id(tensor)] = as_it_is(tensor, flag)

    def settle_history(self) -> None:
        """At the end: what requires a gradient now and did not, or the other way round, is guarded as it was."""
        with no_torch_function():
            for tensor, _ in self.guarded.values():
                if tensor.requires_grad != self.entry_history[id(tensor)][0]:
                    self._keep_as_it_is(tensor)

    def new_history(self, tensor: torch.Tensor) -> bool:
        """Whether the region has left an outside tensor with another history for autograd than it had. Raises Unsupported
        where that can't be undone."""
        required, made_by = self.entry_history[id(tensor)]
        with no_torch_function():
            if tensor.requires_grad == required and tensor.grad_fn is made_by:
                return False
            if made_by is None and (tensor.grad_fn is None or not is_view(tensor)):
                return True
        raise Unsupported(
            "MP110",
            "A tensor from outside that autograd follows is changed in place, which could not be undone if it had to be.",
            hint="Change a copy of it (`x = x.clone()`), or use the operation that is not in place.",
        )

    def _before_assignment(self, tensor: torch.Tensor, name: str, value: Any) -> Any:
        if name == "grad":
            return ("set_field", name)
        if name == "requires_grad" and type(value) is bool:
            self.to_fx(tensor)
            if tensor.requires_grad == value:
                return ("meta", None)  # nothing happens, as long as it is as it was
            raise Unsupported("MP106", f"{HERE} sets whether a tensor requires a gradient, which no graph can do.")
        if name == "data":
            other = is_a(value, torch.Tensor) and tensor.shape != value.shape
            self.reshaped_leaf = self.reshaped_leaf or (tensor.requires_grad and other)
        raise Unsupported("MP106", f"{HERE} is assigned, which no graph can do.")
