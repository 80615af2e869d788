"""In-place operations, views and aliases of inputs under each backend: the caller's tensors end as eager leaves them."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.fx
from torch import nn

from tests.unit.backends.recorder import compile_recorded, record

BACKENDS = ["eager", "aot_eager", "inductor"]


def view_mutated(x: torch.Tensor) -> torch.Tensor:
    x.view(-1)[2:5].mul_(3)
    return x.sum()


def set_item(x: torch.Tensor) -> torch.Tensor:
    x[1] = 7.0
    x[:, 0] = x[:, 1]
    return x + 1


def returns_input(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
    y = x.add_(1)
    return y, x * 2, x


def returns_views(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
    z = x * 2
    return x.t(), z, z[0], z.view(-1)


def strides(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
    return x.t() + 1, x.unsqueeze(0).expand(2, 3, 4) * 1, torch.empty_strided((3, 2), (1, 3)).copy_(x[:, :2])


FUNCTIONS: list[Callable[..., Any]] = [view_mutated, set_item, returns_input, returns_views, strides]


def alias_structure(tensors: list[torch.Tensor]) -> list[list[bool]]:
    keys = [t.untyped_storage().data_ptr() for t in tensors]
    return [[a == b for b in keys] for a in keys]


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_mutation_and_aliasing_equal_eager(function: Callable[..., Any], backend: str) -> None:
    torch.manual_seed(0)
    start = torch.randn(3, 4)
    x, y = start.clone(), start.clone()
    gm, inputs = record(function, x)
    x.copy_(start)
    compiled = compile_recorded(gm, inputs, backend)
    for _ in range(2):
        got, want = compiled.fn(*inputs), function(y)
        want = want if isinstance(want, tuple) else (want,)
        for a, b in zip(got, want, strict=True):
            torch.testing.assert_close(a, b)
            assert a.stride() == b.stride() and a.storage_offset() == b.storage_offset()
        assert alias_structure([x, *got]) == alias_structure([y, *want])
        torch.testing.assert_close(x, y)
    for a, b in zip(got, want, strict=True):
        assert (a is x) == (b is y)


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_parameter_updated_under_no_grad_stays_the_leaf_it_was(backend: str) -> None:
    weight = nn.Parameter(torch.ones(3))
    grad = torch.full((3,), 0.5)
    graph = torch.fx.Graph()
    w, g = graph.placeholder("w"), graph.placeholder("g")
    graph.call_function(torch._C._set_grad_enabled, (False,))
    graph.call_method("add_", (w, g), {"alpha": -2})
    graph.call_function(torch._C._set_grad_enabled, (True,))
    graph.output((graph.call_function(torch.mul, (w, 2)),))
    compiled = compile_recorded(torch.fx.GraphModule({}, graph), [weight, grad], backend)
    (out,) = compiled.fn(weight, grad)
    assert weight.tolist() == [0.0] * 3 and weight.is_leaf and weight.requires_grad and torch.is_grad_enabled()
    out.sum().backward()
    assert weight.grad is not None and weight.grad.tolist() == [2.0] * 3


@pytest.mark.parametrize("backend", BACKENDS)
def test_inputs_that_share_a_storage(backend: str) -> None:
    def step(whole: torch.Tensor, part: torch.Tensor) -> torch.Tensor:
        part.mul_(2)
        return whole + 1

    base = torch.arange(6.0)
    gm, inputs = record(step, base, base[2:4])
    compiled = compile_recorded(gm, inputs, backend)
    base.copy_(torch.arange(6.0))
    (out,) = compiled.fn(*inputs)
    assert base.tolist() == [0, 1, 4, 6, 4, 5] and out.tolist() == [1, 2, 5, 7, 5, 6]


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_lone_slice_of_a_larger_tensor_at_any_offset(backend: str) -> None:
    data = torch.arange(40.0).reshape(10, 4)
    gm, inputs = record(lambda x: x.mul_(2) + 1, data[2:5])
    compiled = compile_recorded(gm, inputs, backend)
    data.copy_(torch.arange(40.0).reshape(10, 4))
    for start in (2, 0, 7):
        want = data[start : start + 3] * 2
        (out,) = compiled.fn(data[start : start + 3])
        torch.testing.assert_close(out, want + 1)
        torch.testing.assert_close(data[start : start + 3], want)
    assert compiled.guards == []


@pytest.mark.parametrize("backend", BACKENDS)
def test_an_activation_changed_in_place_keeps_its_history(backend: str) -> None:
    weight = nn.Parameter(torch.tensor([1.0, 2.0]))
    graph = torch.fx.Graph()
    graph.output((graph.call_method("mul_", (graph.placeholder("x"), 3)),))
    hidden = weight * 2
    compiled = compile_recorded(torch.fx.GraphModule({}, graph), [hidden], backend)
    (out,) = compiled.fn(hidden)
    assert out is hidden
    hidden.sum().backward()
    assert weight.grad is not None and weight.grad.tolist() == [6.0, 6.0]


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_number_read_before_the_tensor_changes(backend: str) -> None:
    for dtype in (torch.float32, torch.float64):
        count = torch.tensor(3.0, dtype=dtype)
        graph = torch.fx.Graph()
        c, x = graph.placeholder("c"), graph.placeholder("x")
        before = graph.call_method("item", (c,))
        graph.call_method("add_", (c, 1))
        after = graph.call_method("item", (c,))
        graph.output(
            (graph.call_function(torch.mul, (x, before)), before, graph.call_function(operator.mul, (after, 10)), None)
        )
        compiled = compile_recorded(torch.fx.GraphModule({}, graph), [count, torch.ones(2)], backend)
        out = compiled.fn(count, torch.ones(2))
        assert out[0].tolist() == [3.0, 3.0] and out[0].dtype == torch.float32
        assert tuple(out[1:]) == (3.0, 40.0, None) and type(out[1]) is float and count.item() == 4.0
