"""Conditions that follow from a graph's inputs alone: checked before the graph runs, like a guard, so the graph isn't cut.

``if mask.all():`` on a mask that the caller passed needs nothing that the graph computes. The few operations between the
inputs and the outcome run before the graph, on the inputs of the call; another outcome counts as a failed guard, before
anything has changed. Key functions: condition, only_for.
"""

from __future__ import annotations

from collections.abc import Iterable

import torch.fx

from magpy_core._compat.torch.tensor_guards import no_torch_function
from magpy_core.knowledge.operators import Fact, named
from magpy_core.opgraph.functions import node_name
from magpy_core.opgraph.operator_graph import OperatorGraph
from magpy_core.opgraph.scalars import Sym

_LIMIT = 24  # operations; more than this is work that the graph should do, once

_EARLY = named(Fact.EARLY)
_AUTOCAST = {"_enter_autocast": 1, "_exit_autocast": -1}


def condition(ops: OperatorGraph, sym: Sym) -> tuple[torch.fx.Node, ...] | None:
    """The operations that compute ``sym`` from the graph's inputs as they are when the region begins, in order; None if they
    belong in the graph."""
    tensors = {node: tensor for tensor, node in ops.values}
    wanted = {leaf.payload for leaf in sym.leaves() if leaf.kind == "node"}
    order: list[torch.fx.Node] = []
    autocast = sum(_AUTOCAST.get(node_name(node), 0) for node in ops.graph.nodes)
    for node in reversed(ops.graph.nodes):
        autocast -= _AUTOCAST.get(node_name(node), 0)
        if node not in wanted:
            continue
        with no_torch_function():
            if node in tensors and ops.writes.has_touched(tensors[node]):
                return None
        if node.op == "placeholder":
            continue
        early = node.op in ("call_function", "call_method") and node_name(node) in _EARLY and "out" not in node.kwargs
        if not early or autocast or len(order) == _LIMIT:  # before an autocast region, it would run in other dtypes
            return None
        order.append(node)
        wanted.update(node.all_input_nodes)
    return tuple(reversed(order))


def only_for(conditions: Iterable[tuple[torch.fx.Node, ...]], used: Iterable[torch.fx.Node]) -> set[torch.fx.Node]:
    """The operations that only these conditions need: neither the rest of the graph nor the ``used`` nodes do."""
    kept = set(used)
    dropped: set[torch.fx.Node] = set()
    for node in sorted({node for nodes in conditions for node in nodes} - kept, reverse=True):  # users first
        if all(user in dropped for user in node.users):
            dropped.add(node)
    return dropped
