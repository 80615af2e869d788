"""Segments: an operator graph cut where Python needs a value before it can go on. Key type: Segment; key function: split."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
import torch.fx

from magpy_core.opgraph.checkpoints import GIVEN


@dataclass
class Segment:
    """A run of graph nodes between two cuts. ``inputs``: placeholders and values of earlier segments it uses, in order;
    ``outputs``: values that later segments, branches or the replay plan use."""

    nodes: list[torch.fx.Node]
    inputs: list[torch.fx.Node] = field(default_factory=list)
    outputs: list[torch.fx.Node] = field(default_factory=list)

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
    bounds = [order[c] + 1 if c in order else 0 for c in cuts]
    segments: list[Segment] = []
    start = 0
    for end in [*bounds, len(nodes)]:
        end = max(end, start)
        segments.append(Segment([n for n in nodes[start:end] if n not in without]))
        start = end
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
