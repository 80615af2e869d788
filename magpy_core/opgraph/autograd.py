"""How tensors from outside stand with autograd. Key type: EntryState; key function: `out_of_reach`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch

from magpy_core._compat.torch.tensor_guards import is_view, no_torch_function
from magpy_core.findings import Unsupported


class EntryState:
    """Tensors from outside as they were when the region began, for guards and undo; by id: whether each required a gradient
    and what had computed it."""

    def __init__(self) -> None:
        self._history: dict[int, tuple[bool, Any]] = {}
        self._changed: dict[int, torch.Tensor] = {}  # where `requires_grad` has changed: the tensor as it was

    def remember(self, tensor: torch.Tensor) -> None:
        """How a tensor stands with autograd when the program first uses it."""
        with no_torch_function():
            self._history[id(tensor)] = (tensor.requires_grad, tensor.grad_fn)

    def makers(self) -> set[Any]:
        """The nodes of autograd's graph that had computed tensors from outside."""
        return {made_by for _, made_by in self._history.values() if made_by is not None}

    def keep_changed(self, tensors: Iterable[torch.Tensor]) -> None:
        """At the end: what requires a gradient now and did not, or the other way round, is guarded as it was."""
        with no_torch_function():
            for tensor in tensors:
                required = self._history[id(tensor)][0]
                if tensor.requires_grad != required and id(tensor) not in self._changed:
                    was = tensor.detach()  # on the same memory
                    parameter = type(tensor) is torch.nn.Parameter
                    self._changed[id(tensor)] = (
                        torch.nn.Parameter(was, required) if parameter else was.requires_grad_(required)
                    )

    def of(self, tensor: torch.Tensor) -> torch.Tensor:
        """A tensor that guards take for ``tensor`` as it was."""
        return self._changed.get(id(tensor), tensor)

    def has_new_history(self, tensor: torch.Tensor) -> bool:
        """Whether autograd sees a tensor from outside differently now. Raises Unsupported where that can't be undone."""
        required, made_by = self._history[id(tensor)]
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


def out_of_reach(inputs: Iterable[torch.Tensor], made: Iterable[torch.Tensor]) -> list[torch.Tensor]:
    """Those of ``inputs`` that take part in autograd, while nothing in ``made`` has them in its history."""
    tracked = [t for t in inputs if t.requires_grad]
    ends = {t.grad_fn for t in tracked if t.grad_fn is not None}
    left: list[Any] = [t.grad_fn for t in made if tracked and t.grad_fn is not None and t.grad_fn not in ends]
    seen, met = set(left), set()  # ``met``: what is reached of ``ends``, and leaves by their id
    while left:
        for node, _ in left.pop().next_functions:
            if node is None or node in seen:
                continue
            seen.add(node)
            if type(node).__name__ == "AccumulateGrad":
                met.add(id(node.variable))
            elif node in ends:
                met.add(node)
            else:
                left.append(node)
    return [t for t in tracked if (id(t) if t.grad_fn is None else t.grad_fn) not in met]
