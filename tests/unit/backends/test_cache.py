"""What was compiled once is found in torch's caches on disk: graphs with methods too, and never one made for another."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import nn
from torch._dynamo.utils import counters

import magpy_core
from magpy_core._compat.torch.inductor import _key_tag

FOUND = "autograd_cache_hit"


@pytest.fixture(autouse=True)
def cache(empty_compiler_cache: Path) -> None:
    counters.clear()


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.lin = nn.Linear(4, 6)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        a, b = self.lin(x).view(-1, 2, 3).split(1, dim=1)  # methods of tensors, also of what a method gave
        return a.transpose(1, 2).contiguous() * b.sum().relu()


def gradients() -> list[torch.Tensor]:
    torch.manual_seed(0)
    net = Net()
    magpy_core.compile(net, backend="inductor")
    for _ in range(3):
        net.zero_grad()
        net(torch.ones(2, 4)).sum().backward()
    (capture,) = magpy_core.captures(net)
    assert capture.is_compiled
    return [p.grad for p in net.parameters() if p.grad is not None]


@pytest.mark.slow
def test_the_second_time_it_is_found() -> None:
    first = gradients()
    assert not counters["aot_autograd"][FOUND]
    assert all(map(torch.equal, first, gradients()))
    assert counters["aot_autograd"][FOUND] == 1


def test_an_optimizers_step_is_found() -> None:
    def step() -> torch.Tensor:
        weight = nn.Parameter(torch.ones(3))
        optimizer = torch.optim.SGD([weight], lr=0.1, momentum=0.9)
        compiled = magpy_core.compile(optimizer.step, backend="inductor")
        for _ in range(4):
            weight.grad = torch.ones(3)
            compiled()
        assert magpy_core.captures(compiled)[0].is_compiled
        return weight.detach()

    first = step()
    assert not counters["aot_autograd"][FOUND]
    assert torch.equal(first, step())
    assert counters["aot_autograd"][FOUND] == 1


@pytest.mark.slow
def test_what_is_found_allows_a_second_backward_pass() -> None:
    def second() -> list[float]:
        compiled = magpy_core.compile(lambda x: (x.sin() * x.view(-1)).exp(), backend="inductor")
        for _ in range(3):
            x = torch.ones(3, requires_grad=True)
            result = compiled(x).sum()
            result.backward(retain_graph=True)
            result.backward()
            assert x.grad is not None
        return x.grad.tolist()

    assert second() == second()
    assert counters["aot_autograd"][FOUND] == 1


@pytest.mark.slow
def test_what_is_found_marks_no_tensor() -> None:
    def sizes() -> None:
        weight = torch.ones(4, requires_grad=True)
        compiled = magpy_core.compile(lambda x: (x.view(-1, 4) * weight).exp().sin(), backend="inductor")
        for n in (4, 8, 12, 16, 20):
            x = torch.ones(n, requires_grad=True)
            result = compiled(x)
            result.sum().backward()
            assert (vars(x), vars(result), vars(weight)) == ({}, {}, {})
            assert x.grad is not None and x.grad.shape == (n,) and result.shape == (n // 4, 4)
        assert magpy_core.captures(compiled)[0].hits >= 2

    sizes()
    found = counters["aot_autograd"][FOUND]
    sizes()
    assert counters["aot_autograd"][FOUND] > found


@pytest.mark.slow
def test_a_number_that_is_compiled_in_is_guarded_when_it_is_found() -> None:
    def elements() -> list[float]:
        compiled = magpy_core.compile(lambda x, i: x.view(-1)[i] * 2, backend="inductor")
        return [compiled(torch.arange(6.0), i).item() for i in (0, 1, 2, 3, 1, 4, 5, 0)]

    assert elements() == elements() == [0.0, 2.0, 4.0, 6.0, 2.0, 8.0, 10.0, 0.0]


def add_in_place(x: torch.Tensor) -> torch.Tensor:
    x.detach().add_(1)
    return x * 2


def shared(one: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    one.add_(1)
    return one * other


@pytest.mark.slow
@pytest.mark.parametrize("leaf_first", [True, False])
def test_a_leaf_and_a_result_are_two_things(leaf_first: bool) -> None:
    def call(leaf: bool) -> list[float]:
        compiled = magpy_core.compile(lambda x: add_in_place(x), backend="inductor")
        for _ in range(3):
            weight = torch.ones(3, requires_grad=True)
            compiled(weight if leaf else weight * 1).sum().backward()
            assert weight.grad is not None
        return weight.grad.tolist()

    assert call(leaf_first) == call(not leaf_first) == [2.0] * 3


@pytest.mark.slow
def test_one_memory_and_two() -> None:
    def call(other: Callable[[torch.Tensor], torch.Tensor]) -> list[float]:
        compiled = magpy_core.compile(lambda a, b: shared(a, b), backend="inductor")
        for _ in range(3):
            t = torch.ones(3)
            result = compiled(t, other(t))
        return result.tolist()

    assert call(lambda t: torch.ones(3)) == [2.0] * 3
    assert call(lambda t: t.view(3)) == [4.0] * 3
    assert call(lambda t: torch.ones(3)) == [2.0] * 3


def test_what_the_key_has_besides_torchs() -> None:
    x, y = torch.ones(3), torch.ones(3)
    leaf = torch.ones(3, requires_grad=True)
    tags = [_key_tag([x, y]), _key_tag([x, x.view(3)]), _key_tag([leaf, y]), _key_tag([leaf * 1, y])]
    with torch.autocast("cpu", dtype=torch.bfloat16):
        tags.append(_key_tag([x, y]))
    with torch.autocast("cpu", dtype=torch.float16):
        tags.append(_key_tag([x, y]))
    torch.set_default_dtype(torch.float64)
    try:
        tags.append(_key_tag([x, y]))
    finally:
        torch.set_default_dtype(torch.float32)
    assert len(set(tags)) == len(tags) - 1  # a leaf that needs gradients is a leaf, as one that doesn't
    assert tags[0] == tags[2]
    assert _key_tag([y, x]) == tags[0] != _key_tag([y, x], checked=True)
