"""Nodes of autograd graphs. Key functions: reached_nodes, is_leaf_node, is_plain_node, custom_function,
has_hooks, is_freed."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch.autograd.function import BackwardCFunction
from torch.utils.hooks import RemovableHandle

from magpy_core._compat.torch.recurrent_operator import is_of_layer


def reached_nodes(tensors: Iterable[torch.Tensor]) -> list[Any]:
    """The nodes that a backward pass from ``tensors`` reaches, in a fixed order, including those of leaves among them."""
    starts = [torch.autograd.graph.get_gradient_edge(t).node for t in tensors if t.requires_grad]
    left, found = starts, dict.fromkeys(starts)
    while left:
        following = [node for node, _ in left.pop().next_functions if node is not None and node not in found]
        found |= dict.fromkeys(following)
        left += dict.fromkeys(following)
    return list(found)


def is_leaf_node(node: Any) -> bool:
    """Whether a node accumulates the gradient of a leaf, its ``variable``."""
    return type(node).__name__ == "AccumulateGrad"


def is_plain_node(node: Any) -> bool:
    """Whether a node is torch's and runs no Python: not that of a custom function in Python or C++."""
    return not isinstance(node, BackwardCFunction) and "::" not in type(node).__name__


def custom_function(node: Any) -> type | None:
    """The ``autograd.Function`` in Python whose call created a node."""
    cls = getattr(type(node), "_forward_cls", None)
    return cls if isinstance(cls, type) else None


def has_hooks(node: Any) -> bool:
    """Whether Python has registered hooks on a node. No API lists them, but a new hook is stored with the others."""

    def probe(*gradients: Any) -> None:
        return None

    for register in (node.register_hook, node.register_prehook):
        number = RemovableHandle.next_id  # programs see it: the keys of a module's hooks
        handle = register(probe)
        hooks = handle.hooks_dict_ref()
        handle.remove()
        if RemovableHandle.next_id == number + 1:  # no other thread has registered a hook
            RemovableHandle.next_id = number
        if hooks:
            return True
    return False


def is_freed(tensors: Iterable[torch.Tensor]) -> bool:
    """Whether a backward pass from ``tensors`` raises, because an earlier one has freed saved tensors."""
    for node in reached_nodes(tensors):
        for name in dir(node):
            if name.startswith("_saved_") or (name == "saved_tensors" and is_of_layer(node)):
                try:
                    getattr(node, name)
                except RuntimeError as error:
                    if "a second time" in str(error):
                        return True
                    raise
    return False
