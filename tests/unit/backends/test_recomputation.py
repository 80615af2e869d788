"""The backward pass of a compiled step computes what was checkpointed again, when its gradient has arrived."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.fx
import torch.nn.functional as F

from magpy_core._compat.torch.fake import new_fake_mode
from magpy_core._compat.torch.operators_trace import after
from magpy_core.backends.gradients import differentiate
from magpy_core.opgraph.segments import CHECKPOINT

aten: Any = torch.ops.aten
Apply = Callable[..., torch.fx.Node]
Part = Callable[[Apply, torch.fx.Node, torch.fx.Node], torch.fx.Node]


def plain(apply: Apply, x: torch.fx.Node, w: torch.fx.Node) -> torch.fx.Node:
    return apply(torch.mul, apply(torch.tanh, apply(torch.matmul, x, w)), x)


def with_dropout(apply: Apply, x: torch.fx.Node, w: torch.fx.Node) -> torch.fx.Node:
    return apply(torch.tanh, apply(F.dropout, plain(apply, x, w), 0.5, True))


def in_place(apply: Apply, x: torch.fx.Node, w: torch.fx.Node) -> torch.fx.Node:
    return apply(torch.exp, apply(torch.relu_, plain(apply, x, w)))


def with_view(apply: Apply, x: torch.fx.Node, w: torch.fx.Node) -> torch.fx.Node:
    return apply(torch.exp, apply(torch.transpose, plain(apply, apply(torch.transpose, x, 0, 1), w), 0, 1))


def step(part: Part, *, marked: bool) -> torch.fx.GraphModule:
    """The loss of three calls of ``part``, each of them checkpointed, and its gradient."""
    graph = torch.fx.Graph()
    value, w = graph.placeholder("x"), graph.placeholder("w")
    for number in (1, 2, 3):
        before = set(graph.nodes)
        value = part(lambda fn, *args: graph.call_function(fn, args), value, w)
        for node in graph.nodes:
            if marked and node not in before:
                node.meta[CHECKPOINT] = number
    loss = graph.call_function(torch.sum, (value,))
    gradients = graph.call_function(torch.autograd.grad, ((loss,), (w,)))
    graph.output((graph.call_method("detach", (loss,)), graph.call_function(lambda pair: pair[0], (gradients,))))
    return torch.fx.GraphModule(torch.nn.Module(), graph)


def traced(part: Part, *, marked: bool = True) -> torch.fx.GraphModule:
    mode, _ = new_fake_mode(dynamic=False)
    x, w = mode.from_tensor(torch.empty(4, 4)), mode.from_tensor(torch.empty(4, 4, requires_grad=True))
    return differentiate(step(part, marked=marked), [x, w], mode).graph


def count(module: torch.fx.GraphModule, target: Any) -> int:
    return len(module.graph.find_nodes(op="call_function", target=target))


@pytest.mark.parametrize("part", [plain, with_dropout, in_place, with_view])
def test_same_values(part: Part) -> None:
    x, w = torch.rand(4, 4) / 4, (torch.rand(4, 4) / 4).requires_grad_()  # small: no overflow, since NaN is not equal to NaN
    results = []
    for module in (step(part, marked=False), traced(part), traced(part, marked=False)):
        torch.manual_seed(0)
        results.append(module(x, w))
    for ours in results[1:]:
        assert all(map(torch.equal, ours, results[0]))


def test_computed_again_after_the_gradient() -> None:
    assert count(traced(plain, marked=False), aten.tanh.default) == 3
    nodes = list(traced(plain).graph.nodes)
    again = [i for i, n in enumerate(nodes) if n.target is aten.tanh.default][3:]
    backward = [i for i, n in enumerate(nodes) if n.target is aten.tanh_backward.default]
    assert again[0] < backward[0] < again[1] < backward[1] < again[2] < backward[2]
    (wait,) = (n for n in nodes[backward[0] : again[1]] if n.target is after)
    assert nodes.index(wait.args[1]) > backward[0]  # for a gradient that the last part has passed on


def test_random_numbers_are_kept() -> None:
    module = traced(with_dropout)
    assert count(module, aten.bernoulli_.float) + count(module, aten.native_dropout.default) == 3
    assert count(module, aten.tanh.default) > 6  # but what follows from them is computed again


def test_what_is_written_is_kept() -> None:
    assert count(traced(in_place), aten.relu_.default) == 3
