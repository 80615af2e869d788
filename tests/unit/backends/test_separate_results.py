"""Results that are copies of one value do not share memory under Inductor, which removes copies."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
import torch
from torch import nn

import magpy_core
from magpy_core.regions.api import region_of

W = torch.randn(8, 8)


def clones(x: torch.Tensor) -> Sequence[torch.Tensor]:
    y = x @ W
    return y.clone(), y.clone(), y.clone()


def copies(x: torch.Tensor) -> Sequence[torch.Tensor]:
    y = x @ W
    return torch.empty(8, 8).copy_(y), torch.empty(8, 8).copy_(y)


def casts(x: torch.Tensor) -> Sequence[torch.Tensor]:
    y = (x @ W).t()
    return y.to(torch.float32, copy=True), y.contiguous().clone(), y.clone()


def of_an_input(x: torch.Tensor) -> Sequence[torch.Tensor]:
    return x, x.clone(), x.clone()


def same_object(x: torch.Tensor) -> Sequence[torch.Tensor]:
    y = x @ W
    return y, y, y.clone()


@pytest.mark.slow
@pytest.mark.parametrize("learns", [False, True])
@pytest.mark.parametrize("fn", [clones, copies, casts, of_an_input, same_object])
def test_copies(fn: Callable[[torch.Tensor], Sequence[torch.Tensor]], learns: bool) -> None:
    compiled = magpy_core.compile(fn, backend="inductor", wait=True)
    x = torch.randn(8, 8, requires_grad=learns)
    for _ in range(3):
        results = compiled(x)
    expected = fn(x)
    assert region_of(compiled).hits
    for i, one in enumerate(results):
        torch.testing.assert_close(one, expected[i])
        for j, other in enumerate(results[:i]):
            assert (one.data_ptr() == other.data_ptr()) == (expected[i].data_ptr() == expected[j].data_ptr()), (i, j)


@pytest.mark.slow
def test_gradients() -> None:
    torch.manual_seed(0)
    weights = [nn.Parameter(torch.randn(8, 8)) for _ in range(2)]
    biases = [nn.Parameter(torch.randn(8)) for _ in range(2)]
    optimizer = torch.optim.SGD([*weights, *biases], lr=0.1)

    def train_step(x: torch.Tensor) -> None:
        optimizer.zero_grad()
        nn.functional.linear(x, weights[0] + weights[1], biases[0] + biases[1]).square().mean().backward()
        optimizer.step()

    compiled = magpy_core.compile(train_step, backend="inductor", wait=True)
    for _ in range(4):
        compiled(torch.randn(4, 8))
    assert region_of(compiled).hits
    for one, other in (weights, biases):
        assert one.grad is not None and other.grad is not None
        assert one.grad.data_ptr() != other.grad.data_ptr() and torch.equal(one.grad, other.grad)
