"""Leaves: tensors that start or stop to require a gradient inside a region.

A graph doesn't change that of any tensor: from there on it works with an alias, which shares the memory, and requires a
gradient or doesn't. A tensor from outside must be as it was when the region ends. Key type: Leaves.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import torch
import torch.fx

from magpy_core._compat.torch.autograd_nodes import is_leaf_node, reached_nodes
from magpy_core._compat.torch.tensor_guards import is_view, no_torch_function
from magpy_core.findings import HERE, Unsupported
from magpy_core.opgraph.hooks import Hooks
from magpy_core.opgraph.host import Host
from magpy_core.opgraph.inputs import GraphInputs
from magpy_core.opgraph.replicas import Replicas

_PLAIN = (torch.Tensor, torch.nn.Parameter)


def new_leaf(value: torch.Tensor) -> torch.Tensor:
    """The same memory, as a leaf that requires a gradient."""
    return value.detach().requires_grad_()


@dataclass(eq=False)
class Leaves:
    """``made``: the nodes of tensors that are leaves only in the region, with the place. ``with_gradient``: of those, the
    tensors that have got a gradient."""

    host: Host
    inputs: GraphInputs
    made: dict[torch.fx.Node, Any] = field(default_factory=dict)
    with_gradient: list[torch.Tensor] = field(default_factory=list)
    hooks: Hooks = field(init=False)
    replicas: Replicas = field(default_factory=Replicas)
    _nodes: dict[int, dict[bool, torch.fx.Node]] = field(default_factory=dict)
    """By the tensor's id: its node when it requires a gradient, and when not."""
    _from_outside: dict[int, tuple[torch.Tensor, bool]] = field(default_factory=dict)
    """Tensors from outside, and whether they required a gradient at entry."""

    def __post_init__(self) -> None:
        self.hooks = Hooks(self.host, self.inputs)

    def prepare(self, tensor: torch.Tensor, required: bool) -> None:
        """``tensor`` is about to require a gradient, or not to. Raises Unsupported where an alias would differ."""
        node = self.inputs.node(tensor)
        inside = self.inputs.is_inside(tensor)
        if (
            type(tensor) not in _PLAIN
            or tensor.grad_fn is not None
            or tensor.is_inference()
            or (is_view(tensor) and not inside)
        ):
            text = f"{HERE} sets whether a tensor with a history requires a gradient."
            raise Unsupported("MP118", text, hint="Set it of a tensor without one: `x.detach().requires_grad_()`.")
        nodes = self._nodes.setdefault(id(tensor), {tensor.requires_grad: node})
        if not inside:
            self._from_outside.setdefault(id(tensor), (tensor, tensor.requires_grad))
            self.host.guard_field(self.inputs.guard(tensor), tensor, "is_leaf", True)
        if required not in nodes:
            base = nodes[not required]
            graph = self.inputs.graph
            nodes[required] = graph.call_function(new_leaf, (base,)) if required else graph.call_method("detach", (base,))
            self.host.annotate(nodes[required], tensor)
            if required:
                self.made[nodes[required]] = self.host.site
        self.inputs.values.add(tensor, nodes[required])

    def is_made(self, tensor: torch.Tensor) -> bool:
        """Whether ``tensor`` was created in the region and is a leaf there."""
        return self.inputs.is_inside(tensor) and self.inputs.values.node(tensor) in self.made

    def drop(self, results: Iterable[torch.Tensor]) -> bool:
        """Remove the leaves from a graph without a backward pass, if its ``results`` require gradients without them."""
        with no_torch_function():
            for tensor in results if self.made else ():
                if not tensor.requires_grad:
                    continue
                nodes = reached_nodes([tensor]) if tensor.grad_fn is not None else ()
                others = [node for node in nodes if is_leaf_node(node) and not self.is_made(node.variable)]
                if not others and not self.inputs.entry.grad_fns().intersection(nodes):
                    return False
        for node in self.made:
            if node.target is new_leaf:
                node.op, node.target = "call_method", "detach"
            else:
                node.kwargs = {**node.kwargs, "requires_grad": False}
        return True

    def left_changed(self) -> list[torch.Tensor]:
        """Tensors from outside that require a gradient and did not at entry, or the other way round."""
        return [tensor for tensor, required in self._from_outside.values() if tensor.requires_grad != required]
