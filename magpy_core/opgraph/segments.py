"""Segments: an operator graph cut where Python needs a value before it can continue, and around checkpointed nodes.

Nodes recorded under ``torch.utils.checkpoint`` run under it again. The nodes of one such call have the same number in
``meta[CHECKPOINT]``. Key type: Segment; key functions: split, with_checkpoints.
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
import torch.fx
from torch.utils.checkpoint import checkpoint

from magpy_core._compat.torch.fx_targets import printable_targets
from magpy_core._compat.torch.torch_state import SET_GRAD
from magpy_core.opgraph.expectations import Expectation

CHECKPOINT = "magpy_checkpoint"
GIVEN = "magpy_checkpoint_arguments"  # in a value's ``meta``: the ``checkpoint`` calls that take it as an argument


@dataclass
class Segment:
    """A run of graph nodes between two cuts. ``inputs``: placeholders and values of earlier segments it uses, in order;
    ``outputs``: values that later segments, branches or the replay plan use."""

    nodes: list[torch.fx.Node]
    inputs: list[torch.fx.Node] = field(default_factory=list)
    outputs: list[torch.fx.Node] = field(default_factory=list)
    expected: tuple[Expectation, ...] = ()
    """What its writes depend on."""

    @property
    def grad_mode(self) -> bool | None:
        """The grad mode that it ends in; None if it does not change it."""
        return next((bool(node.args[0]) for node in reversed(self.nodes) if node.target is SET_GRAD), None)

    def module(self) -> torch.fx.GraphModule:
        """A GraphModule of this segment alone; its placeholders are ``inputs``, in order."""
        graph = torch.fx.Graph()
        mapping: dict[torch.fx.Node, torch.fx.Node] = {}
        for node in self.inputs:
            copy = graph.placeholder(node.name)
            if node.op == "placeholder":
                copy.meta.update(node.meta)
            elif GIVEN in node.meta:
                copy.meta[GIVEN] = node.meta[GIVEN]
            mapping[node] = copy
        for node in self.nodes:
            mapping[node] = graph.node_copy(node, lambda n: mapping[n])
        graph.output(tuple(mapping[n] for n in self.outputs))
        for expectation in self.expected:
            expectation.add_to(graph, mapping)
        graph.lint()
        return torch.fx.GraphModule(torch.nn.Module(), graph)


def split(
    graph: torch.fx.Graph,
    cuts: list[torch.fx.Node],
    wanted: list[list[torch.fx.Node]],
    without: frozenset[torch.fx.Node] | set[torch.fx.Node] = frozenset(),
) -> list[Segment]:
    """Segments of ``graph``: cut ``i`` comes after node ``cuts[i]``; ``wanted[i]`` are the values Python needs after segment
    ``i`` (the last entry: what replay needs). Placeholders belong to no segment, nor do the nodes in ``without``."""
    nodes = [n for n in graph.nodes if n.op not in ("placeholder", "output")]
    order = {n: i for i, n in enumerate(nodes)}
    bounds = [0, *itertools.accumulate((order[c] + 1 if c in order else 0 for c in cuts), max), len(nodes)]
    segments = [Segment([n for n in nodes[a:b] if n not in without]) for a, b in itertools.pairwise(bounds)]
    home = {n: i for i, s in enumerate(segments) for n in s.nodes}
    needed = dict.fromkeys(node for group in wanted for node in group)
    for i, segment in enumerate(segments):
        uses = dict.fromkeys(used for node in segment.nodes for used in node.all_input_nodes if home.get(used) != i)
        segment.inputs = list(uses)
        needed |= uses
    for node in needed:
        if node in home:
            segments[home[node]].outputs.append(node)
    return segments


def _under_checkpoint(stretch: torch.fx.GraphModule, given: int) -> Callable[..., Any]:
    """A function that runs ``stretch`` under ``checkpoint``. The first ``given`` values are passed as its arguments, which
    it saves and checks for changes before the backward pass; the others (parameters) are read again at recomputation."""

    def run_checkpointed(*values: Any) -> Any:
        found = values[given:]
        return checkpoint(lambda *args: stretch(*args, *found), *values[:given], use_reentrant=False)

    return run_checkpointed


def with_checkpoints(module: torch.fx.GraphModule) -> torch.fx.GraphModule:
    """``module`` with each checkpointed group of nodes as one call, whose activations the backward pass recomputes."""
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
    stretch = Segment(members, inputs, outputs).module()
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
