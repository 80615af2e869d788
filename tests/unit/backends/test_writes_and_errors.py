"""A compiled graph that raises on bad data leaves what it writes as eager mode does, however the compiler orders it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.fx
import torch.nn.functional as F
from torch import nn

import magpy_core
from magpy_core.opgraph.functions import IS_BACKWARD
from magpy_core.opgraph.raising import at_risk_in_order, at_risk_when_compiled
from magpy_core.regions.api import region_of

World = tuple[Callable[[torch.Tensor, torch.Tensor], Any], Callable[[], list[torch.Tensor]]]


def training_step() -> World:
    """Adam's step counters depend on no token and on no target."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Embedding(10, 8), nn.Flatten(), nn.Linear(32, 5, bias=False), nn.BatchNorm1d(5))
    optimizer, average = torch.optim.AdamW(model.parameters(), lr=0.01), torch.ones(1000)

    def train_step(x: torch.Tensor, y: torch.Tensor) -> Any:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        average.mul_(0.9)
        loss.backward()
        optimizer.step()
        return loss.detach()

    def state() -> list[torch.Tensor]:
        of_optimizer = [value for state in optimizer.state.values() for value in state.values()]
        return [*model.state_dict().values(), *of_optimizer, average]

    return train_step, state


def elements_of_a_table() -> World:
    """The table is read, and the buffer written, in one loop."""
    table, buffer = torch.arange(50.0).view(10, 5), torch.zeros(24, 5)

    def region(x: torch.Tensor, y: torch.Tensor) -> None:
        buffer.add_(F.embedding(x.view(-1), table))

    return region, lambda: [buffer]


@pytest.mark.slow
@pytest.mark.parametrize("bad", ["x", "y"])
@pytest.mark.parametrize("make", [training_step, elements_of_a_table])
def test_what_an_error_leaves(make: Callable[[], World], bad: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MAGPY_COMPILE", "foreground")
    (plain, plain_state), (ours, our_state) = make(), make()
    compiled = magpy_core.compile(ours, backend="inductor", wait=True)
    torch.manual_seed(1)
    x, y = torch.randint(10, (6, 4)), torch.randint(5, (6,))
    wrong = {"x": x.clone(), "y": y.clone()}
    wrong[bad].view(-1)[-1] = 77
    for i in range(8):
        given = (x, y) if i != 5 else (wrong["x"], wrong["y"])
        raised = []
        for call in (plain, compiled):
            try:
                call(*given)
            except IndexError as error:
                raised.append(str(error))
        assert len(raised) in (0, 2)
        for one, other in zip(plain_state(), our_state(), strict=True):
            torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)
    assert region_of(compiled).hits >= 4


def test_what_a_backward_pass_keeps_apart() -> None:
    graph = torch.fx.Graph()
    tokens, weight, steps = (graph.placeholder(name) for name in ("tokens", "weight", "steps"))
    loss = graph.call_function(F.embedding, (tokens, weight))
    passed = graph.call_function(torch.autograd.grad, ((loss,), (weight,)))
    passed.meta[IS_BACKWARD] = True
    counted = graph.call_method("add_", (steps, 1))
    updated = graph.call_method("sub_", (weight, passed))
    written = {weight: [updated], steps: [counted]}
    assert at_risk_when_compiled(graph, written) == {steps}
    assert not at_risk_in_order(graph, {weight: [updated], steps: [counted]}) - {weight, steps}
    graph.call_function(F.embedding, (tokens, weight))  # raises after both
    assert at_risk_when_compiled(graph, written) == at_risk_in_order(graph, written) == {weight, steps}
