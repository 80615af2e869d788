"""The autograd state of tensors from outside. Key type: EntryState; key function: `out_of_reach`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch

from magpy_core._compat.torch.tensor_guards import is_view, no_torch_function
from magpy_core.findings import Unsupported


class EntryState:
    """The autograd state of tensors from outside when the region began, for guards and undo: `requires_grad` and `grad_fn`,
    by the tensor's id."""

    def __init__(self) -> None:
        self._history: dict[int, tuple[bool, Any]] = {}
        self._changed: dict[int, torch.Tensor] = {}  # if that or its memory has changed: an alias as it was

    def remember(self, tensor: torch.Tensor) -> None:
        """Keep the state of a tensor that the program uses for the first time."""
        with no_torch_function():
            self._history[id(tensor)] = (tensor.requires_grad, tensor.grad_fn)

    def grad_fns(self) -> set[Any]:
        """The nodes of autograd's graph that computed tensors from outside."""
        return {grad_fn for _, grad_fn in self._history.values() if grad_fn is not None}

    def keep(self, tensor: torch.Tensor) -> None:
        """``tensor`` is about to get other memory: it is guarded as it was."""
        if id(tensor) not in self._changed:
            self._changed[id(tensor)] = self._alias(tensor)

    def _alias(self, tensor: torch.Tensor) -> torch.Tensor:
        required = self._history[id(tensor)][0]
        with no_torch_function():
            was = tensor.detach()  # on the same memory
            parameter = type(tensor) is torch.nn.Parameter
            return torch.nn.Parameter(was, required) if parameter else was.requires_grad_(required)

    def keep_changed(self, tensors: Iterable[torch.Tensor]) -> None:
        """At the end of the region: a tensor whose `requires_grad` has changed is guarded by its old state."""
        with no_torch_function():
            for tensor in tensors:
                if tensor.requires_grad != self._history[id(tensor)][0]:
                    self.keep(tensor)

    def of(self, tensor: torch.Tensor) -> torch.Tensor:
        """``tensor``, or an alias of it with the autograd state at entry."""
        return self._changed.get(id(tensor), tensor)

    def has_new_history(self, tensor: torch.Tensor) -> bool:
        """Whether the autograd state of a tensor from outside has changed. Raises Unsupported where that can't be undone."""
        required, grad_fn = self._history[id(tensor)]
        with no_torch_function():
            if tensor.requires_grad == required and tensor.grad_fn is grad_fn:
                return False
            if grad_fn is None and (tensor.grad_fn is None or not is_view(tensor)):
                return True
        raise Unsupported(
            "MP110",
            "An outside tensor that autograd tracks is changed in place: that can't be undone.",
            hint="Change a copy of it (`x = x.clone()`), or use the out-of-place operation.",
        )


def out_of_reach(inputs: Iterable[torch.Tensor], results: Iterable[torch.Tensor]) -> list[torch.Tensor]:
    """Those of ``inputs`` that require a gradient and are in the history of none of the ``results``."""
    tracked = [t for t in inputs if t.requires_grad]
    ends = {t.grad_fn for t in tracked if t.grad_fn is not None}
    stack: list[Any] = [t.grad_fn for t in results if tracked and t.grad_fn is not None and t.grad_fn not in ends]
    seen, reached = set(stack), set()  # ``reached``: nodes of ``ends``, and leaves by their id
    while stack:
        for node, _ in stack.pop().next_functions:
            if node is None or node in seen:
                continue
            seen.add(node)
            if type(node).__name__ == "AccumulateGrad":
                reached.add(id(node.variable))
            elif node in ends:
                reached.add(node)
            else:
                stack.append(node)
    return [t for t in tracked if (id(t) if t.grad_fn is None else t.grad_fn) not in reached]
