"""The autograd nodes of AOTAutograd's compiled graphs. Key function: compiled_edge."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

_NAME = "CompiledFunctionBackward"
_MAX_VIEWS = 8  # views of an output that AOTAutograd recreates outside of the graph


def compiled_edge(tensor: torch.Tensor) -> tuple[Any, int] | None:
    """The autograd node of the compiled graph that returned ``tensor`` or its base, and the index of that result; None if
    no compiled graph did."""
    edge: tuple[Any, int] = (tensor.grad_fn, tensor.output_nr)
    for _ in range(_MAX_VIEWS):
        node, number = edge
        if node is None:
            return None
        if node.name() == _NAME:
            return node, number
        if not node.next_functions:
            return None
        edge = node.next_functions[0]
    return None


def input_edge(tensor: torch.Tensor) -> tuple[Any, int]:
    """The edge that the gradient of an input follows, as in a node's ``next_functions``."""
    if tensor.grad_fn is None:
        return torch.autograd.graph.get_gradient_edge(tensor).node, 0
    return tensor.grad_fn, tensor.output_nr


def on_gradients(node: Any, change: Callable[[Sequence[Any], Sequence[Any], Sequence[Any]], tuple[Any, ...] | None]) -> None:
    """``change(edges, gradients, given)`` is called after each backward pass of ``node``, with the edges of its
    ``gradients`` and the gradients ``given`` to it; its result, if not None, replaces ``gradients``."""
    edges = node.next_functions  # a reference to the node itself would be a cycle
    node.register_hook(lambda gradients, given: change(edges, gradients, given))


def has_hooks(node: Any) -> bool:
    """Whether ``node`` belongs to a leaf with gradient hooks."""
    leaf = getattr(node, "variable", None)
    return leaf is not None and bool(leaf._backward_hooks or leaf._post_accumulate_grad_hooks)
