"""Results that are differentiated twice (a gradient penalty: ``autograd.grad(..., create_graph=True)``).

No graph of AOTAutograd can be: the second backward pass raises. A program that does it does so from its first step on, so
results of recorded calls, which plain Python made, are watched. Key function: `watch`.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator
from typing import Any

import torch

from magpy_core._compat.tensor_guards import no_torch_function
from magpy_core.refgraph import natives
from magpy_core.refgraph.kinds import is_a

_DEPTH = 4


def watch(result: Any, on_twice: weakref.WeakMethod[Callable[[], None]]) -> None:
    """Calls ``on_twice`` whenever a backward pass through ``result`` is part of a graph itself."""

    def before_backward(gradients: Any) -> None:
        if torch.is_grad_enabled() and (told := on_twice()) is not None:
            told()

    with no_torch_function():
        for tensor in _tensors(result, _DEPTH):
            try:
                node = tensor.grad_fn
            except RuntimeError:  # a view that may not be looked at any more
                continue
            if node is not None:
                node.register_prehook(before_backward)


def _tensors(value: Any, depth: int) -> Iterator[torch.Tensor]:
    if is_a(value, torch.Tensor):
        yield value
    elif depth and is_a(value, (list, tuple, dict)):
        for part in dict.values(value) if is_a(value, dict) else natives.elements(value):
            yield from _tensors(part, depth - 1)
