"""Held writes: a traced step whose path depends on tensors' data writes its inputs only if the data is as expected.

Cutting the graph there would separate a backward pass from the operations it differentiates, and copies of all parameters
would be needed to undo what was written on the wrong path. Instead, each written input gets its old value if an expectation
is not met, in the kernel that writes it. Key function: hold_writes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
import torch.fx

from magpy_core._compat.torch.condition_op import is_test
from magpy_core._compat.torch.operator_schemas import written_memory
from magpy_core.backends.sharing import written_inputs


def hold_writes(traced: torch.fx.GraphModule, gm: torch.fx.GraphModule, fakes: Sequence[Any]) -> None:
    """Change ``traced``, the operations of ``gm`` on inputs like ``fakes``, if it has expectations."""
    graph = traced.graph
    tests = [node for node in graph.nodes if is_test(node)]
    if not tests:
        return
    inputs = graph.find_nodes(op="placeholder")
    devices = {node: fake.device for node, fake in zip(inputs, fakes, strict=True) if isinstance(fake, torch.Tensor)}
    silent = written_inputs(gm.graph)  # the schemas of some operations hide that they write running statistics
    named = {new for new, old in zip(inputs, gm.graph.find_nodes(op="placeholder"), strict=True) if old in silent}
    changed = [node for node in inputs if node in named | written_memory(graph)]
    aten = torch.ops.aten
    first = next(node for node in graph.nodes if node.op != "placeholder")
    with graph.inserting_before(first):
        old = {node: graph.call_function(aten.clone.default, (node,)) for node in changed}
    with graph.inserting_before(graph.output_node()):
        met = {torch.device("cpu"): _all(graph, tests)}
        for node in changed:
            place = devices[node]
            if place not in met:
                met[place] = graph.call_function(aten._to_copy.default, (met[torch.device("cpu")],), {"device": place})
            value = graph.call_function(aten.where.self, (met[place], node, old[node]))
            graph.call_function(aten.copy_.default, (node, value))
    graph.lint()
    traced.recompile()


def _all(graph: torch.fx.Graph, tests: list[torch.fx.Node]) -> torch.fx.Node:
    """Whether all are true: by pairs, so that a compiler can compute many at once (``backends.cuda_graphs.numbers``)."""
    while len(tests) > 1:
        pairs = zip(tests[::2], tests[1::2], strict=False)
        last = tests[-1:] if len(tests) % 2 else []
        tests = [graph.call_function(torch.ops.aten.logical_and.default, pair) for pair in pairs] + last
    return tests[0]
