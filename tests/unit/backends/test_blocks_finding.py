"""Which operations of a graph are taken for repeated blocks, and when two blocks are the same."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.fx

from magpy_core.backends.blocks import compiling
from magpy_core.backends.blocks.finding import Run, find_runs
from magpy_core.backends.blocks.printing import printed
from magpy_core.backends.fakes import make_fake_inputs

CHAIN = (
    torch.sin,
    torch.cos,
    torch.tanh,
    torch.exp,
    torch.sigmoid,
    torch.abs,
    torch.sqrt,
    torch.relu,
    torch.floor,
    torch.neg,
)


def operations(graph: torch.fx.Graph) -> list[torch.fx.Node]:
    return [node for node in graph.nodes if node.op not in ("placeholder", "output")]


def chain(graph: torch.fx.Graph, x: torch.fx.Node, functions: tuple[Callable[..., object], ...] = CHAIN) -> torch.fx.Node:
    for function in functions:
        x = graph.call_function(function, (x,))
    return x


def test_a_run_begins_where_one_value_crosses() -> None:
    graph = torch.fx.Graph()
    x = graph.call_function(torch.erf, (graph.placeholder("x"),))
    for _ in range(4):
        x = graph.call_function(torch.add, (chain(graph, x), x))
    graph.output((graph.call_function(torch.erf, (x,)),))
    assert find_runs(operations(graph), {}) == [Run(1, 11, 4)]


def test_nothing_is_cut_between_a_value_and_its_write() -> None:
    graph = torch.fx.Graph()
    x = graph.placeholder("x")
    for _ in range(5):
        x = graph.call_method("relu_", (graph.call_function(torch.add, (chain(graph, x), 1)),))
    graph.output((x,))
    assert find_runs(operations(graph), {}) == [Run(0, 12, 5)]


def test_constants_and_inputs_tell_blocks_apart() -> None:
    graph = torch.fx.Graph()
    inputs = [graph.placeholder(f"w{i}") for i in range(6)]
    x = inputs[0]
    for weight, constant in zip(inputs, (1, 1, 1, 1.0, 1, 1), strict=True):
        x = graph.call_function(torch.add, (graph.call_function(torch.mul, (chain(graph, x), weight)), constant))
    graph.output((x,))
    nodes = operations(graph)
    assert find_runs(nodes, {}) == [Run(0, 12, 3)]
    assert find_runs(nodes, {node: str(i) for i, node in enumerate(inputs)}) == []


def test_updates_are_merged() -> None:
    graph = torch.fx.Graph()
    for i in range(12):
        graph.call_method("copy_", (w := graph.placeholder(f"w{i}"), chain(graph, w)))
    graph.output(())
    (run,) = find_runs(operations(graph), {})
    assert run.length == 33 and run.count == 4 and not run.chained


def test_few_or_short_repeats_are_left() -> None:
    graph = torch.fx.Graph()
    x = graph.placeholder("x")
    graph.output((chain(graph, chain(graph, x)),))
    assert find_runs(operations(graph), {}) == []
    short = torch.fx.Graph()
    x = short.placeholder("x")
    short.output((chain(short, x, (torch.sin, torch.cos) * 4),))
    assert find_runs(operations(short), {}) == []


class Alike:
    """Printed like every other."""

    def __repr__(self) -> str:
        return "alike"


def test_what_only_looks_alike_is_told_apart() -> None:
    graph = torch.fx.Graph()
    x = graph.placeholder("x")
    one, other = Alike(), Alike()
    names = {x: "x"}
    nodes = [graph.call_function(torch.add, (x, value)) for value in (one, one, other, 1, 1.0, True, 0.0, -0.0, "%x")]
    keys = [printed(node, names) for node in nodes]
    assert keys[0] == keys[1]
    assert len(set(keys)) == 8


def test_merging_leaves_no_rest_where_it_can() -> None:
    assert Run(0, 10, 48).merged(5) == Run(0, 60, 8)
    assert Run(0, 10, 12).merged(4) == Run(0, 40, 3)
    assert Run(0, 10, 12).merged(5) is None


def test_small_blocks_are_not_called_one_by_one() -> None:
    """A block of a few elements is not worth a call: so many are merged that too few are left."""
    graph = torch.fx.Graph()
    x = graph.placeholder("x")
    for _ in range(4):
        x = chain(graph, x)
    graph.output((x,))
    inputs = make_fake_inputs([torch.ones(4)])
    module = torch.fx.GraphModule({}, graph)
    assert compiling.compile_blocks(module, inputs.fakes, inputs.fake_mode, lambda gm, fakes: (gm, None, [])) is None
