"""Conditions that follow from a graph's inputs alone: checked before the graph runs, like a guard, so the graph isn't cut.

``if mask.all():`` on a mask that the caller passed needs nothing that the graph computes. The few operations between the
inputs and the outcome run before the graph, on the inputs of the call; another outcome counts as a failed guard, before
anything has changed. Key functions: condition, only_for.
"""

from __future__ import annotations

from collections.abc import Iterable

import torch.fx
from torch.amp import autocast_mode

from magpy_core._compat.torch.tensor_guards import no_torch_function
from magpy_core.knowledge.operators import Fact, named
from magpy_core.opgraph.functions import node_name
from magpy_core.opgraph.operator_graph import OperatorGraph
from magpy_core.opgraph.scalars import Sym

_LIMIT = 24  # operations; more than this is work that the graph should do, once

_EARLY = named(Fact.EARLY)


def condition(ops: OperatorGraph, sym: Sym) -> tuple[torch.fx.Node, ...] | None:
    """The operations that compute ``sym`` from the graph's inputs as they are when the region begins, in order; None if they
    belong in the graph."""
    wanted = {leaf.payload for leaf in sym.leaves() if leaf.kind == "node"}
    order: list[torch.fx.Node] = []
    while wanted:  # never all of the graph: a program may decide at each of thousands of operations
        node = max(wanted)
        wanted.remove(node)
        tensor = ops.values.tensor(node)
        if tensor is None and "magpy_source" in node.meta:
            return None  # the tensor has another node now: what of the input it is made of is not known any more
        with no_torch_function():
            if tensor is not None and ops.writes.has_touched(tensor):
                return None
        if node.op == "placeholder":
            continue
        early = node.op in ("call_function", "call_method") and node_name(node) in _EARLY and "out" not in node.kwargs
        # before an autocast region, it would run in other dtypes
        if not early or len(order) == _LIMIT or _is_under_autocast(ops.graph, node):
            return None
        order.append(node)
        wanted.update(node.all_input_nodes)
    return tuple(reversed(order))


def _is_under_autocast(graph: torch.fx.Graph, node: torch.fx.Node) -> bool:
    entered, left = (
        sum(one < node for one in graph.find_nodes(op="call_function", target=target, sort=False))
        for target in (autocast_mode._enter_autocast, autocast_mode._exit_autocast)
    )
    return bool(entered != left)


def only_for(conditions: Iterable[tuple[torch.fx.Node, ...]], used: Iterable[torch.fx.Node]) -> set[torch.fx.Node]:
    """The operations that only these conditions need: neither the rest of the graph nor the ``used`` nodes do."""
    kept = set(used)
    dropped: set[torch.fx.Node] = set()
    for node in sorted({node for nodes in conditions for node in nodes} - kept, reverse=True):  # users first
        if all(user in dropped for user in node.users):
            dropped.add(node)
    return dropped
