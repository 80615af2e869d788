"""Operations that may raise, and those that would end the process on a GPU."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.fx

from magpy_core.opgraph.raising import may_end_process

_Node = torch.fx.Node


def _indexed(graph: torch.fx.Graph, x: _Node) -> None:
    found = graph.call_function(operator.getitem, (x, x))
    found.meta["magpy_tensor"] = (torch.float32, (2,))


def _written(graph: torch.fx.Graph, x: _Node) -> None:
    graph.call_function(operator.setitem, (x, x, 0))


def _looked_up(graph: torch.fx.Graph, x: _Node) -> None:
    graph.call_function(torch.nn.functional.embedding, (x, x))


def _divided(graph: torch.fx.Graph, x: _Node) -> None:
    """A number by another: Python raises for 0."""
    read = graph.call_method("item", (x,))
    graph.call_function(operator.truediv, (1.0, read))


def _differentiated(graph: torch.fx.Graph, x: _Node) -> None:
    graph.call_function(torch.autograd.grad, ((x,), (x,)))


def _updated(graph: torch.fx.Graph, x: _Node) -> None:
    graph.call_function(torch._foreach_addcdiv_, ([x], [x], [x], 0.1))
    graph.call_method("copy_", (x, x))
    graph.call_function(operator.getitem, (x, 0))


@pytest.mark.parametrize(
    ("add", "ends"),
    [(_indexed, True), (_written, True), (_looked_up, True), (_divided, False), (_differentiated, False), (_updated, False)],
)
def test_checks_of_data_end_the_process_on_a_gpu(add: Callable[..., Any], ends: bool) -> None:
    graph = torch.fx.Graph()
    x = graph.placeholder("x")
    add(graph, x)
    last = graph.call_function(torch.relu, (x,))
    assert may_end_process(graph, None) is ends
    assert not may_end_process(graph, last)
