"""Graphs that are refused before any compiler sees them, because of where their tensors are or what memory they share."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.fx
from torch._subclasses.fake_tensor import FakeTensorMode

from magpy_core.backends.preparation import prepare
from magpy_core.findings import Unsupported
from magpy_core.opgraph.leaves import new_leaf


def _lstm(device: str) -> tuple[torch.fx.GraphModule, list[Any]]:
    """One layer of the graph of an LSTM in evaluation."""
    graph = torch.fx.Graph()
    x, h, c, *weights = (graph.placeholder(name) for name in ("x", "h", "c", "w", "u"))
    out = graph.call_function(torch.lstm, (x, (h, c), tuple(weights), False, 1, 0.0, False, False, False))
    graph.output((out,))
    with FakeTensorMode():
        sizes = ((5, 2, 4), (1, 2, 3), (1, 2, 3), (12, 4), (12, 3))
        fakes = [torch.empty(size, device=device) for size in sizes]
    return torch.fx.GraphModule({}, graph), fakes


def test_recurrent_layers_under_autocast_on_a_device(monkeypatch: pytest.MonkeyPatch) -> None:
    """cuDNN's results are in float16, those of the parts that it is taken apart into are not."""
    gm, fakes = _lstm("cuda")
    prepare(gm, fakes, torch.device("cpu"))
    monkeypatch.setattr(torch, "is_autocast_enabled", lambda device="cuda": True)
    with pytest.raises(Unsupported, match="results of another type"):
        prepare(gm, fakes, torch.device("cpu"))
    gm, fakes = _lstm("cpu")
    prepare(gm, fakes, torch.device("cpu"))


def test_autocast_inside() -> None:
    gm, fakes = _lstm("cuda")
    first = next(node for node in gm.graph.nodes if node.op == "call_function")
    with gm.graph.inserting_before(first):
        gm.graph.call_function(torch.amp.autocast_mode._enter_autocast, ("cuda", None, True, None))
    with pytest.raises(Unsupported, match="results of another type"):
        prepare(gm, fakes, torch.device("cpu"))


def _lists(take: Callable[[torch.fx.Graph, torch.fx.Node], list[list[torch.fx.Node]]]) -> Any:
    """A graph that doubles its input and adds to a list that ``take`` makes of the result."""
    graph = torch.fx.Graph()
    doubled = graph.call_function(torch.mul, (graph.placeholder("x"), 2))
    lists = take(graph, doubled)
    graph.call_function(torch._foreach_add_, (lists[0], lists[1] if len(lists) > 1 else 1.0))
    graph.output((doubled,))
    with FakeTensorMode():
        return torch.fx.GraphModule({}, graph), [torch.empty(4)]


@pytest.mark.parametrize("how", ["detach", "t", "view_as", "new_leaf"])
def test_a_list_with_the_same_memory_twice(how: str) -> None:
    """Eager mode adds to it twice; a functional graph keeps one of the two sums."""

    def aliased(graph: torch.fx.Graph, r: torch.fx.Node) -> torch.fx.Node:
        if how == "new_leaf":  # `r.detach().requires_grad_()`
            return graph.call_function(new_leaf, (r,))
        return graph.call_method(how, (r, r) if how == "view_as" else (r,))

    for take in (lambda g, r: [[r, aliased(g, r)]], lambda g, r: [[r, g.call_method("clone", (r,))], [r, aliased(g, r)]]):
        with pytest.raises(Unsupported, match="may overlap"):
            prepare(*_lists(take), torch.device("cpu"))
    for take in (lambda g, r: [[r, g.call_method("clone", (r,))]], lambda g, r: [[r], [aliased(g, r)]]):
        prepare(*_lists(take), torch.device("cpu"))


@pytest.mark.parametrize("function", [torch._foreach_sqrt, torch.autograd.grad, torch.aminmax])
def test_the_results_of_one_operation_are_apart(function: Any) -> None:
    """Optimizers divide by lists that one operation has made, and add lists of gradients."""

    def results(graph: torch.fx.Graph, r: torch.fx.Node, *indices: int) -> list[torch.fx.Node]:
        made = graph.call_function(function, ([r, r],))
        return [graph.call_function(operator.getitem, (made, i)) for i in indices]

    prepare(*_lists(lambda g, r: [results(g, r, 0, 1)]), torch.device("cpu"))
    with pytest.raises(Unsupported, match="may overlap"):
        prepare(*_lists(lambda g, r: [results(g, r, 1, 1)]), torch.device("cpu"))
