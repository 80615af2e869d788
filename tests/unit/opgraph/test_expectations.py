"""Expectations: a decision on tensors' data, evaluated by a graph."""

from __future__ import annotations

import gc
import math
import operator
import weakref
from typing import Any

import pytest
import torch
import torch.fx

from magpy_core.opgraph.expectations import Expectation
from magpy_core.opgraph.scalars import Sym


class Read:
    """A graph that reads numbers from tensors."""

    def __init__(self) -> None:
        self.graph = torch.fx.Graph()
        self.x = self.graph.placeholder("x")

    def number(self, method: str = "item", *, of: torch.fx.Node | None = None, hint: float = 1.0) -> Sym:
        return Sym("node", self.graph.call_method(method, (of or self.x,)), (), hint)

    def run(self, expectation: Expectation, *inputs: Any) -> bool:
        copy = torch.fx.Graph()
        copies: dict[torch.fx.Node, torch.fx.Node] = {}
        for node in self.graph.nodes:
            copies[node] = copy.node_copy(node, lambda n: copies[n])
        expectation.add_to(copy, copies)
        (test,) = copy.find_nodes(op="call_function", target=torch.ops.magpy.holds.default)
        copy.output(test)
        copy.lint()
        result = torch.fx.GraphModule(torch.nn.Module(), copy)(*inputs)
        assert result.dtype is torch.bool and result.dim() == 0
        return bool(result)


def test_a_comparison() -> None:
    made = Read()
    sym = Sym("call", operator.gt, (Sym("call", operator.mul, (made.number(), 2), 2.0), 1.0), True)
    expectation = Expectation(sym, True)
    assert expectation.is_possible
    assert made.run(expectation, torch.tensor(0.6)) and not made.run(expectation, torch.tensor(0.4))


def test_an_exact_number_has_its_type() -> None:
    made = Read()
    expectation = Expectation(made.number(), 0)
    assert made.run(expectation, torch.tensor(0)) and not made.run(expectation, torch.tensor(0.0))


def test_what_raises_is_not_as_expected() -> None:
    made = Read()
    expectation = Expectation(Sym("call", operator.gt, (Sym("call", math.sqrt, (made.number(),), 1.0), 0.5), True), True)
    assert made.run(expectation, torch.tensor(4.0)) and not made.run(expectation, torch.tensor(-4.0))


def test_the_tensor_is_read_where_the_program_reads_it() -> None:
    made = Read()
    sym = made.number()
    made.graph.call_method("add_", (made.x, 1))
    assert made.run(Expectation(sym, 1.0), torch.tensor(1.0))


def test_each_test_has_its_own_text() -> None:
    made = Read()
    item, truth, other = made.number(), made.number("__bool__"), made.number()
    syms = [
        item, truth, *(Sym("call", fn, (item, 2), 1.0) for fn in (operator.pow, math.pow, pow)),
        Sym("call", operator.pow, (item, 2.0), 1.0), Sym("call", operator.add, (item, other), 2.0),
        Sym("call", operator.add, (item, item), 2.0),
    ]  # fmt: skip
    texts = set()
    for sym in syms:
        for outcome in (1, 1.0, True):
            graph = torch.fx.Graph()
            x = graph.placeholder("x")
            copies = {node: graph.node_copy(node, lambda n, x=x: x) for node in made.graph.nodes}
            Expectation(sym, outcome).add_to(graph, copies)
            (test,) = graph.find_nodes(op="call_function", target=torch.ops.magpy.holds.default)
            texts.add(test.args[1])
    assert len(texts) == 3 * len(syms)


@pytest.mark.parametrize("kind", ["source", "two_tensors", "keyword"])
def test_what_a_graph_cannot_hold(kind: str) -> None:
    made = Read()
    if kind == "source":
        sym = Sym("call", operator.add, (made.number(), Sym("source", None, (), 1.0)), 2.0)
    elif kind == "two_tensors":
        sym = Sym("node", made.graph.call_function(torch.equal, (made.x, made.x)), (), True)
    else:
        sym = Sym("node", made.graph.call_method("item", (made.x,), {"a": 1}), (), 1.0)
    assert not Expectation(sym, True).is_possible


def test_a_graph_that_has_one_is_not_kept_alive() -> None:
    made = Read()
    expectation = Expectation(Sym("call", operator.gt, (made.number(), 0.125), True), True)
    assert made.run(expectation, torch.tensor(0.5))
    alive = weakref.ref(made.graph)
    del made, expectation
    gc.collect()
    assert alive() is None
