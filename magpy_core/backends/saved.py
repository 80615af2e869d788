"""Inputs that autograd saves for the backward pass and that the graph writes.

Eager saves the tensor itself: the backward pass raises if it was written since then, by this call or by the next one, and
takes the new values where the write isn't counted (running statistics, `.data`). A compiled graph saves the values as they
were. Results of earlier operations that take part in autograd are left out: they are new at each call.

Key function: `saved_and_written`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
import torch.fx

from magpy_core.backends.sharing import changed, viewed, written
from magpy_core.opgraph.functions import silently_written


def saved_and_written(gm: torch.fx.GraphModule, fakes: Sequence[Any], mode: Any) -> str | None:
    """The name of an input that ``gm`` writes and whose memory autograd saves for the backward pass; None if there is none.

    What autograd saves is found by a run on fakes with hooks for saved tensors, which graphs that use such an input for
    nothing but the write don't need. Raises whatever that run raises.
    """
    placeholders = [n for n in gm.graph.nodes if n.op == "placeholder"]
    lasting = {n for n, fake in zip(placeholders, fakes, strict=True) if isinstance(fake, torch.Tensor) and fake.is_leaf}
    doubtful = lasting & _written(gm.graph) & _used(gm.graph)
    if not doubtful:
        return None
    with mode:
        values = [_copied(fake) for fake in fakes]
        memory = {_memory(v): n.name for n, v in zip(placeholders, values, strict=True) if n in doubtful}
        run = _Run(gm)
        with torch.autograd.graph.saved_tensors_hooks(run.pack, lambda saved: saved):
            run.run(*values)
    return next((memory[key] for key in run.saved if key in memory), None)


class _Run(torch.fx.Interpreter):
    """Runs a graph and keeps the memory of what autograd saves, except by normalisations that write it: their backward
    pass in training mode uses the statistics of the batch."""

    _normalises = False

    def __init__(self, gm: torch.fx.GraphModule) -> None:
        super().__init__(gm, garbage_collect_values=False)
        self.saved: set[Any] = set()

    def run_node(self, n: torch.fx.Node) -> Any:
        self._normalises = n.op == "call_function" and bool(silently_written(n.target, n.args, n.kwargs))
        return super().run_node(n)

    def pack(self, tensor: torch.Tensor) -> torch.Tensor:
        if not self._normalises:
            self.saved.add(_memory(tensor))
        return tensor


def _memory(value: Any) -> Any:
    strided = isinstance(value, torch.Tensor) and value.layout is torch.strided
    return value.untyped_storage()._cdata if strided else None


def _copied(fake: Any) -> Any:
    """A fake like ``fake`` with memory of its own: the run writes it."""
    if not isinstance(fake, torch.Tensor) or fake.layout is not torch.strided:
        return fake
    copy = torch.empty_strided(fake.shape, fake.stride(), dtype=fake.dtype, device=fake.device)
    if not fake.requires_grad:
        return copy
    copy.requires_grad_()
    return copy if fake.is_leaf else copy.view_as(copy)


def _written(graph: torch.fx.Graph) -> set[torch.fx.Node]:
    """The inputs that operations write, through views too."""
    return {target for node in graph.nodes for target in map(_root, written(node)) if target.op == "placeholder"}


def _used(graph: torch.fx.Graph) -> set[torch.fx.Node]:
    """The inputs whose values operations read other than to write them; a view reads nothing."""
    found = set()
    for node in graph.nodes:
        if node.op in ("call_function", "call_method") and (changed(node) or next(viewed(node), None) is None):
            targets = set(written(node))
            found |= {_root(n) for n in node.all_input_nodes if n not in targets}
    return found


def _root(node: torch.fx.Node) -> torch.fx.Node:
    return [node, *viewed(node)][-1]
