"""The tensors in what a region returns, and their backward pass. Key functions: has_history, on_backward."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch

from magpy_core._compat.torch.tensor_guards import no_torch_function
from magpy_core.refgraph import natives
from magpy_core.refgraph.kinds import is_a

_DEPTH = 4


def has_history(result: Any) -> bool:
    """Whether a tensor of ``result`` takes part in autograd."""
    with no_torch_function():
        return any(tensor.requires_grad for tensor in _tensors(result, _DEPTH))


def on_backward(result: Any, callback: Callable[[Any], None]) -> None:
    """Calls ``callback`` with the gradients whenever a backward pass reaches ``result``, before it goes through it."""
    with no_torch_function():
        for tensor in _tensors(result, _DEPTH):
            try:
                node = tensor.grad_fn
            except RuntimeError:  # a view that may not be used any more
                continue
            if node is not None:
                node.register_prehook(callback)


def _tensors(value: Any, depth: int) -> Iterator[torch.Tensor]:
    if is_a(value, torch.Tensor):
        yield value
    elif depth and is_a(value, (list, tuple, dict)):
        for part in dict.values(value) if is_a(value, dict) else natives.elements(value):
            yield from _tensors(part, depth - 1)
