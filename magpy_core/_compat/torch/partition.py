"""How AOTAutograd's joint graph is cut into forward and backward: each draws the random numbers that eager draws there.

torch keeps a draw wherever its inputs are at hand: in the backward graph again, whose results nobody uses, or in the forward
graph one that a custom ``backward`` makes. Key functions: `default_partition`, `settled`.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import torch


def _draws(node: torch.fx.Node) -> bool:
    tags = getattr(node.target, "tags", ())
    return node.op == "call_function" and torch.Tag.nondeterministic_seeded in tags


def settled(partition: Callable[..., Any], joint: torch.fx.GraphModule, inputs: Any, **options: Any) -> Any:
    """``partition``'s forward and backward, each draw in the half that it was traced in and only there; raises RuntimeError
    where it leaves one out."""
    draws = [node for node in joint.graph.nodes if _draws(node) and "recompute" not in node.meta]
    for node in draws:  # those of checkpoints are made twice, with the state put back
        behind = node.meta.get("partitioner_tag") in ("is_backward", "must_be_in_backward")
        node.meta["partitioner_tag"] = "must_be_in_backward" if behind else "must_be_in_forward"
    names = {node.name for node in draws}
    forward, backward = partition(joint, inputs, **options)
    left_out = names - {node.name for half in (forward, backward) for node in half.graph.nodes}
    if left_out:
        raise RuntimeError(f"random numbers are not drawn that eager draws: {', '.join(sorted(left_out))}")
    return forward, backward


def default_partition(joint: torch.fx.GraphModule, inputs: Any, **options: Any) -> Any:
    """torch's default partition. It takes a node for a tensor unless something takes its results apart, and nothing does
    with the results of a draw that nobody uses."""
    from torch._functorch import partitioners

    for node in list(joint.graph.nodes):
        value = node.meta.get("val")
        if not node.users and node.op == "call_function" and isinstance(value, tuple | list) and len(value) > 0:
            with joint.graph.inserting_after(node):
                first = joint.graph.call_function(operator.getitem, (node, 0))
            first.meta.update({k: v for k, v in node.meta.items() if k != "tensor_meta"}, val=value[0])
    return settled(partitioners.default_partition, joint, inputs, **options)
