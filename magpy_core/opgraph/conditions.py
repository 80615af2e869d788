"""Conditions that follow from a graph's inputs alone: checked before the graph runs, like a guard, so that nothing is cut.

``if mask.all():`` on a mask that the caller passed needs nothing that the graph computes. The few operations between the
inputs and the answer run ahead of the graph, on the inputs as the call brings them, exactly as they did when they were
recorded; another answer is a guard that fails, found before anything has happened. Key functions: condition, only_for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import torch.fx

from magpy_core.knowledge.operators import Fact, named
from magpy_core.opgraph.functions import node_name

_LIMIT = 24  # operations; more are work that belongs in the graph, and should not be done twice

_EARLY = named(Fact.EARLY)
_AUTOCAST = {"_enter_autocast": 1, "_exit_autocast": -1}


def _may_run_early(node: torch.fx.Node) -> bool:
    return node_name(node) in _EARLY and "out" not in node.kwargs


def condition(
    decided_by: Iterable[torch.fx.Node], graph: torch.fx.Graph, unchanged: Callable[[torch.fx.Node], bool]
) -> tuple[torch.fx.Node, ...] | None:
    """The operations that lead from the graph's inputs to the values of ``decided_by``, in order; None if they belong in
    the graph. ``unchanged``: whether a value's memory has not been written to so far."""
    wanted: set[torch.fx.Node] = set()
    waiting = list(decided_by)
    while waiting:
        node = waiting.pop()
        if node in wanted:
            continue
        if not unchanged(node):
            return None
        if node.op == "placeholder":
            continue
        if node.op not in ("call_function", "call_method") or not _may_run_early(node) or len(wanted) == _LIMIT:
            return None
        wanted.add(node)
        waiting.extend(node.all_input_nodes)
    order: list[torch.fx.Node] = []
    autocast = 0
    for node in graph.nodes:
        autocast += _AUTOCAST.get(getattr(node.target, "__name__", ""), 0)
        if node in wanted:
            if autocast:
                return None  # ahead of the graph it would be computed in other types
            order.append(node)
    return tuple(order)


def only_for(conditions: Iterable[tuple[torch.fx.Node, ...]], used: Iterable[torch.fx.Node]) -> set[torch.fx.Node]:
    """The operations of these conditions that nothing else needs: neither the rest of the graph nor what is ``used``."""
    kept = set(used)
    dropped: set[torch.fx.Node] = set()
    order = {node: None for nodes in conditions for node in nodes}
    changed = True
    while changed:
        found = {n for n in order if n not in dropped and n not in kept and all(user in dropped for user in n.users)}
        changed = bool(found)
        dropped |= found
    return dropped
