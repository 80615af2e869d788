"""A step that decides on tensors' data is one compiled graph, which writes nothing if the data is not as expected."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import magpy_core
from magpy_core.backends.held_writes import hold_writes
from magpy_core.regions.api import region_of


def stepper(limit: float) -> tuple[nn.Module, Callable[[torch.Tensor], Any]]:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 6), nn.BatchNorm1d(6), nn.Linear(6, 2))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1, fused=True)

    def step(x: torch.Tensor) -> Any:
        optimizer.zero_grad()
        loss = F.relu(model(x)).square().mean() + x.square().mean()
        if loss > limit:
            return None
        loss.backward()
        optimizer.step()
        return loss.detach()

    return model, step


@pytest.mark.parametrize("backend", ["aot_eager", pytest.param("inductor", marks=pytest.mark.slow)])
def test_nothing_is_written_on_another_path(backend: str) -> None:
    model, step = stepper(20.0)
    compiled = magpy_core.compile(step, backend=backend, wait=True)
    for _ in range(4):
        assert compiled(torch.randn(5, 4)) is not None
    (*_, capture) = sorted(region_of(compiled).captures, key=lambda capture: capture.hits)
    assert capture.hits and capture.holds_writes and capture.is_complete
    assert "clone()" not in capture.replay.code  # nothing is copied to be restored
    before = {name: value.clone() for name, value in model.named_parameters()}
    tracked = model[1].num_batches_tracked.item()  # type: ignore[index, union-attr]
    hits = capture.hits
    assert compiled(torch.randn(5, 4) * 50) is None
    assert capture.hits == hits
    assert all(torch.equal(value, before[name]) for name, value in model.named_parameters())
    assert model[1].num_batches_tracked.item() == tracked + 1  # type: ignore[index, union-attr]  # by eager mode
    assert compiled(torch.randn(5, 4)) is not None


def test_a_path_that_varies_is_cut_in_the_end() -> None:
    torch.manual_seed(0)
    weight = torch.ones(3, requires_grad=True)

    def step(x: torch.Tensor) -> Any:
        weight.grad = None
        out = (weight * x).sum()
        (out * out).backward()
        if out > 0:
            return out.detach() + 1
        weight.data.sub_(0.0)
        return out.detach()

    def run(i: int) -> float:
        return float(compiled(torch.full((3,), 1.0 if i % 2 else -1.0)))

    compiled = magpy_core.compile(step, backend="aot_eager", wait=True)
    assert [run(i) for i in range(40)] == [4.0 if i % 2 else -3.0 for i in range(40)]
    region = region_of(compiled)
    assert not any(capture.holds_writes for capture in region.captures)


def test_a_graph_without_expectations_is_left_alone() -> None:
    graph = torch.fx.Graph()
    x = graph.placeholder("x")
    graph.output((graph.call_function(torch.ops.aten.add_.Tensor, (x, 1)),))
    module = torch.fx.GraphModule(nn.Module(), graph)
    before = str(graph)
    hold_writes(module, module, [torch.ones(2)])
    assert str(module.graph) == before


@pytest.mark.parametrize("name", ["NAdam", "Adagrad"])
def test_optimizers_that_divide_by_what_they_compute_of_counts(name: str) -> None:
    """A divisor of 0 raises in Python: the graph holds its writes, and copies no parameter to restore it."""
    torch.manual_seed(0)
    model = nn.Linear(4, 2)
    optimizer = getattr(torch.optim, name)(model.parameters(), lr=0.1)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1, gamma=0.9)

    def step(x: torch.Tensor) -> Any:
        optimizer.zero_grad()
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        scheduler.step()
        return loss.detach()

    compiled = magpy_core.compile(step, backend="aot_eager", wait=True)
    for _ in range(5):
        compiled(torch.randn(5, 4))
    capture = max(region_of(compiled).captures, key=lambda capture: capture.hits)
    assert capture.hits and capture.holds_writes and capture.is_complete
    assert "clone()" not in capture.replay.code
