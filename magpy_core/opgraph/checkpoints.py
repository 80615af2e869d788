"""Checkpointed stretches of a graph: what ran under ``torch.utils.checkpoint`` runs under it again.

The nodes of one such call carry the same number in ``meta[CHECKPOINT]``. Key function: with_checkpoints.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import torch
import torch.fx
from torch.utils.checkpoint import checkpoint

from magpy_core._compat.torch.fx_targets import printable_targets

CHECKPOINT = "magpy_checkpoint"
GIVEN = "magpy_checkpoint_arguments"  # of a value: the calls of ``checkpoint`` that it is an argument of


def _under_checkpoint(stretch: torch.fx.GraphModule, given: int) -> Callable[..., Any]:
    """``checkpoint`` keeps its arguments, and objects if they change before the backward pass; what the function finds
    otherwise (its parameters) is used as it is then. The first ``given`` values are the arguments."""

    def run_checkpointed(*values: Any) -> Any:
        found = values[given:]
        return checkpoint(lambda *args: stretch(*args, *found), *values[:given], use_reentrant=False)

    return run_checkpointed


def with_checkpoints(module: torch.fx.GraphModule) -> torch.fx.GraphModule:
    """``module`` with each checkpointed stretch as one call: its activations are computed again in the backward pass."""
    graph = module.graph
    groups: dict[int, list[torch.fx.Node]] = {}
    for node in graph.nodes:
        if CHECKPOINT in node.meta and node.op not in ("placeholder", "output"):
            groups.setdefault(node.meta[CHECKPOINT], []).append(node)
    for number, members in groups.items():
        _group(graph, members, number)
    if groups:
        graph.lint()
        module.recompile()
    return module


def _group(graph: torch.fx.Graph, members: list[torch.fx.Node], number: int) -> None:
    inside = set(members)
    used = list(dict.fromkeys(used for node in members for used in node.all_input_nodes if used not in inside))
    given = [node for node in used if number in node.meta.get(GIVEN, ())]
    inputs = [*given, *(node for node in used if node not in given)]
    outputs = [node for node in members if any(user not in inside for user in node.users)]
    part = torch.fx.Graph()
    mapping = {node: part.placeholder(node.name) for node in inputs}
    for node in members:
        mapping[node] = part.node_copy(node, lambda n: mapping[n])
    part.output(tuple(mapping[node] for node in outputs))
    stretch = torch.fx.GraphModule(torch.nn.Module(), part)
    printable_targets(stretch)
    with graph.inserting_after(members[-1]):
        call = graph.call_function(_under_checkpoint(stretch, len(given)), tuple(inputs))
    after = call
    for i, node in enumerate(outputs):
        with graph.inserting_after(after):
            after = graph.call_function(operator.getitem, (call, i))
        if GIVEN in node.meta:
            after.meta[GIVEN] = node.meta[GIVEN]
        node.replace_all_uses_with(after, delete_user_cb=lambda user: user not in inside)
    for node in reversed(members):
        graph.erase_node(node)
