"""Partition of AOTAutograd's joint graph into forward and backward: each draws the random numbers that eager draws there.

torch places a draw wherever its inputs are available: it may repeat an unused draw in the backward graph, or move a draw of
a custom ``backward`` to the forward graph. Values saved for the backward graph must not change, but torch may save an input
that the forward graph writes. Key functions: `default_partition`, `partitioned`.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import torch


def _draws(node: torch.fx.Node) -> bool:
    tags = getattr(node.target, "tags", ())
    return node.op == "call_function" and torch.Tag.nondeterministic_seeded in tags


def _is_assertion(node: torch.fx.Node) -> bool:
    packet = getattr(node.target, "overloadpacket", None)
    return node.op == "call_function" and getattr(packet, "__name__", "").startswith("_assert_")


def partitioned(
    partition: Callable[..., Any], joint: torch.fx.GraphModule, inputs: Any, *, place_draws: bool = True, **options: Any
) -> Any:
    """The forward and backward graphs of ``partition``. With ``place_draws``, each draw is only in the half in which it was
    traced; raises RuntimeError if one is omitted."""
    for node in joint.graph.nodes:
        if _is_assertion(node) and "partitioner_tag" not in node.meta:  # otherwise the backward graph repeats it
            node.meta["partitioner_tag"] = "must_be_in_forward"
    draws = [node for node in joint.graph.nodes if place_draws and _draws(node) and "recompute" not in node.meta]
    for node in draws:  # without those of checkpoints, which run twice with the same random state
        behind = node.meta.get("partitioner_tag") in ("is_backward", "must_be_in_backward")
        node.meta["partitioner_tag"] = "must_be_in_backward" if behind else "must_be_in_forward"
    names = {node.name for node in draws}
    forward, backward = partition(joint, inputs, **options)
    left_out = names - {node.name for half in (forward, backward) for node in half.graph.nodes}
    if left_out:
        raise RuntimeError(f"random numbers are missing that eager mode has: {', '.join(sorted(left_out))}")
    _copy_saved_inputs(forward, options["num_fwd_outputs"])
    return forward, backward


def _copy_saved_inputs(forward: torch.fx.GraphModule, results: int) -> None:
    """Save inputs that ``forward`` writes and also saves for the backward pass as copies made before the write.

    The backward graph was traced with the old values, and another call of the graph before the backward pass would write
    the input again. ``results``: the number of outputs before the saved ones.
    """
    graph = forward.graph
    written = {n.args[0] for n in graph.nodes if n.target is torch.ops.aten.copy_.default}
    inputs = graph.find_nodes(op="placeholder")
    output: Any = graph.output_node()
    outputs = list(output.args[0])
    saved = [i for i in range(results, len(outputs)) if outputs[i] in written and outputs[i] in inputs]
    for i in saved:
        node = outputs[i]
        with graph.inserting_after(inputs[-1]):
            outputs[i] = graph.call_function(torch.ops.aten.clone.default, (node,))
        outputs[i].meta.update(node.meta, val=torch.clone(node.meta["val"]))
        if outputs[i].meta["val"].stride() != node.meta["val"].stride():
            raise RuntimeError("an input that is saved for the backward pass is written, and its copy has other strides")
    if saved:
        output.args = (type(output.args[0])(outputs), *output.args[1:])
        graph.lint()
        forward.recompile()


def default_partition(joint: torch.fx.GraphModule, inputs: Any, **options: Any) -> Any:
    """torch's default partition, with a ``getitem`` for unused nodes that return a tuple: it assumes that a node is a tensor
    unless a ``getitem`` uses it."""
    from torch._functorch import partitioners

    for node in list(joint.graph.nodes):
        value = node.meta.get("val")
        if not node.users and node.op == "call_function" and isinstance(value, tuple | list) and len(value) > 0:
            with joint.graph.inserting_after(node):
                first = joint.graph.call_function(operator.getitem, (node, 0))
            first.meta.update({k: v for k, v in node.meta.items() if k != "tensor_meta"}, val=value[0])
    return partitioned(partitioners.default_partition, joint, inputs, **options)
