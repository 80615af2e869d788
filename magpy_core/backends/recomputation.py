"""Recomputation: in a traced step, the backward pass computes the activations of checkpointed parts again.

Tracing runs a checkpointed part once, and its backward pass uses what the part has computed, which would stay in memory
until then. Here it uses copies of these operations, which run when its gradient has arrived. What can't be repeated is
kept: random numbers, writes, and operations on memory that is written before. Key function: recompute; key type: Parts.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.fx

from magpy_core._compat.torch.operator_schemas import can_repeat, is_tensor, memory, written_memory
from magpy_core._compat.torch.operators import is_recurrent
from magpy_core._compat.torch.operators_trace import after, traced_nodes
from magpy_core._compat.torch.recurrent_layers import taken_apart
from magpy_core.opgraph.segments import CHECKPOINT

_Node = torch.fx.Node


class Parts(torch.fx.Interpreter):
    """Runs a graph that is being traced, and notes which traced nodes belong to which of its parts.

    ``checkpoints``: by the name of a traced node, the number of the checkpoint it was recorded under; ``backward``: the
    names of those of backward passes."""

    def __init__(self, gm: torch.fx.GraphModule) -> None:
        super().__init__(gm, garbage_collect_values=False)
        self.checkpoints: dict[str, int] = {}
        self.backward: set[str] = set()

    def run_node(self, n: torch.fx.Node) -> Any:
        number = n.meta.get(CHECKPOINT)
        if number is None and n.target is not torch.autograd.grad:
            return self._run(n)
        before = len(traced_nodes())
        result = self._run(n)
        names = [node.name for node in traced_nodes()[before:]]
        if number is None:
            self.backward.update(names)
        else:
            self.checkpoints.update(dict.fromkeys(names, number))
        return result

    def _run(self, n: torch.fx.Node) -> Any:
        if not is_recurrent(n):
            return super().run_node(n)
        with taken_apart([self.env[given] for given in n.all_input_nodes]):
            return super().run_node(n)


def recompute(traced: torch.fx.GraphModule, parts: Parts) -> None:
    """Change a traced graph so that backward passes use recomputed values of checkpointed parts."""
    if not parts.checkpoints:
        return
    graph = traced.graph
    backward = [node for node in graph.nodes if node.name in parts.backward]
    inside: dict[int, list[_Node]] = {}
    for node in graph.nodes:
        if node.name in parts.checkpoints:
            inside.setdefault(parts.checkpoints[node.name], []).append(node)
    for part in inside.values():
        _recompute_part(part, backward)
    graph.lint()
    traced.recompile()


def _recompute_part(part: list[_Node], backward: list[_Node]) -> None:
    """``part``: the nodes of one checkpoint, in order; ``backward``: those of backward passes."""
    inside, later = set(part), set(backward)
    # what the program uses outside stays in memory anyway
    repeated = {n for n in part if can_repeat(n) and all(user in inside or user in later for user in n.users)}
    position = next((i for i, node in enumerate(backward) if not repeated.isdisjoint(node.all_input_nodes)), None)
    gradient = next((node for node in reversed(backward[:position]) if is_tensor(node)), None)
    if position is None or gradient is None:
        return
    graph, start = gradient.graph, backward[position]
    written = written_memory(graph, start)
    wanted: set[_Node] = set()  # what the backward pass uses, and what that is computed from
    for node in reversed(part):
        if (
            node in repeated
            and any(user in later or user in wanted for user in node.users)
            and written.isdisjoint(memory(node).union(*map(memory, node.all_input_nodes)))
        ):
            wanted.add(node)
    copies: dict[_Node, _Node] = {}

    def copied(used: _Node) -> _Node:
        if used not in copies and used not in inside and used.op != "placeholder" and is_tensor(used):
            copies[used] = graph.call_function(after, (used, gradient))
        return copies.get(used, used)

    with graph.inserting_before(start):
        for node in part:
            if node in wanted:
                copies[node] = graph.node_copy(node, copied)
    for node in wanted:
        node.replace_all_uses_with(copies[node], delete_user_cb=lambda user: user in later)
