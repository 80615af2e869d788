"""Hooks of tensors, which a backward pass inside a region calls: functions that depend on their argument only.

autograd calls them in a recorded run and in the eager backend's graph. Compilers run the graph on tensors of their own: the
nodes made here register the hooks on these. Key type: Hooks.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
import torch.fx

from magpy_core.findings import HERE, Unsupported
from magpy_core.opgraph.functions import REGISTERS_HOOK
from magpy_core.opgraph.host import Finish, Host
from magpy_core.opgraph.inputs import GraphInputs

Hook = Callable[[torch.Tensor], "torch.Tensor | None"]
#: The field of a tensor that holds its hooks.
HOOKS = "_backward_hooks"


@dataclass(eq=False)
class Hooks:
    """``of_leaves``: the ids of tensors from outside whose hooks are guarded. ``inside``: nodes that register hooks of
    tensors created in the region."""

    host: Host
    inputs: GraphInputs
    of_leaves: set[int] = field(default_factory=set)
    inside: list[torch.fx.Node] = field(default_factory=list)

    def keep(self, leaf: torch.Tensor) -> None:
        """A backward pass reaches ``leaf``, a tensor from outside with hooks. Raises Unsupported."""
        if id(leaf) in self.of_leaves:
            return
        hooks = self.host.guard_hooks(self.inputs.guard(leaf), leaf)
        self.of_leaves.add(id(leaf))
        if hooks:
            self._node(_with_hooks(hooks), leaf)

    def register(self, tensor: torch.Tensor, hook: Any) -> Finish:
        """Record that the program registers a hook on ``tensor``. Raises Unsupported."""
        if not self.inputs.is_inside(tensor):
            text = f"{HERE} registers a hook that stays on an outside tensor."
            raise Unsupported("MP118", text, hint="Register it once, before the region is called.")
        self.host.guard_hook(hook)
        self.inside.append(self._node(_registering(hook), tensor))
        return lambda handle: handle

    def _node(self, target: Callable[[torch.Tensor], None], tensor: torch.Tensor) -> torch.fx.Node:
        node = self.inputs.graph.call_function(target, (self.inputs.node(tensor),))
        node.meta[REGISTERS_HOOK] = True
        self.host.annotate(node, None)
        return node


def _registering(hook: Hook) -> Callable[[torch.Tensor], None]:
    def register_hook(tensor: torch.Tensor) -> None:
        tensor.register_hook(hook)

    return register_hook


def _with_hooks(hooks: tuple[Hook, ...]) -> Callable[[torch.Tensor], None]:
    def keep_hooks(leaf: torch.Tensor) -> None:
        if not getattr(leaf, HOOKS):  # a compiler's tensor
            for hook in hooks:
                leaf.register_hook(hook)

    return keep_hooks
