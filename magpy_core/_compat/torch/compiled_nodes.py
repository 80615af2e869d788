"""The autograd nodes of AOTAutograd's compiled graphs. Key function: compiled_edge."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

_NAME = "CompiledFunctionBackward"
_FAR = 8  # views of an output that AOTAutograd makes again outside of the graph


def compiled_edge(tensor: torch.Tensor) -> tuple[Any, int] | None:
    """The node whose backward pass is the compiled graph's, and which of its results ``tensor`` is, or is a view of; None if
    it is of no compiled graph."""
    edge: tuple[Any, int] = (tensor.grad_fn, tensor.output_nr)
    for _ in range(_FAR):
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
    """Where the gradient of an input goes: what a node's ``next_functions`` have for it."""
    if tensor.grad_fn is None:
        return torch.autograd.graph.get_gradient_edge(tensor).node, 0
    return tensor.grad_fn, tensor.output_nr


def on_gradients(node: Any, change: Callable[[Sequence[Any], Sequence[Any], Sequence[Any]], tuple[Any, ...] | None]) -> None:
    """``change(edges, gradients, given)`` is called after each backward pass of ``node``: where its ``gradients`` go, and
    what was ``given`` to it; what it returns, if anything, takes their place."""
    edges = node.next_functions  # not the node itself: the hook is the node's
    node.register_hook(lambda gradients, given: change(edges, gradients, given))


def has_hooks(node: Any) -> bool:
    """Whether ``node`` is that of a leaf with hooks of its gradient."""
    leaf = getattr(node, "variable", None)
    return leaf is not None and bool(leaf._backward_hooks or leaf._post_accumulate_grad_hooks)
