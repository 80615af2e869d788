"""Gradient flags, settings of torch, set-up and calls that are one node: what is captured, refused, undone and said."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

import magpy_core
from magpy_core.findings import Severity
from magpy_core.regions.api import region_of


def codes(compiled: Any) -> set[str]:
    return {f.code for f in region_of(compiled).findings.values() if f.severity.rank <= Severity.WARNING.rank}


def leaf_inside(x: torch.Tensor) -> torch.Tensor:
    y = x * 2
    y.requires_grad = True
    return y * 3


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_a_leaf_made_inside_is_refused(backend: str) -> None:
    compiled = magpy_core.compile(leaf_inside, backend=backend)
    for _ in range(3):
        assert compiled(torch.ones(2)).requires_grad
    assert magpy_core.captures(compiled) == [] and "MP118" in codes(compiled)


def test_a_region_that_sets_the_flag_of_an_argument_is_refused() -> None:
    def region(x: torch.Tensor) -> torch.Tensor:
        before = x.requires_grad
        x.requires_grad_(True)
        return x * 2 if before else x * 3

    compiled = magpy_core.compile(region, backend="eager")
    for required in (False, False, True, True, False):
        x = torch.ones(2, requires_grad=required)
        assert compiled(x).tolist() == ([2.0, 2.0] if required else [3.0, 3.0])
        assert x.requires_grad
    assert "MP118" in codes(compiled)


def test_an_undone_change_in_place_leaves_no_history() -> None:
    def region(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        x.mul_(w)
        return x * 2 if x.sum() > 4 else x * 3

    compiled = magpy_core.compile(region, backend="eager", fullgraph=True)
    for value in (1.0, 1.0, 9.0):  # the last goes the other way, when the graph has run
        w = torch.full((2,), 1.5, requires_grad=True)
        compiled(torch.full((2,), value), w).sum().backward()
        assert w.grad is not None and w.grad.tolist() == [value * (2 if value == 9.0 else 3)] * 2


def test_a_setting_for_cuda_may_be_changed_for_a_while() -> None:
    def region(x: torch.Tensor) -> Any:
        with torch.backends.cudnn.flags(enabled=False):
            if x.sum() > 4:
                raise ValueError("too much")
            inside = torch.backends.cudnn.enabled
        return x * 2, inside

    compiled = magpy_core.compile(region, backend="eager")
    for value in (1.0, 1.0, 9.0):
        if value > 4:
            with pytest.raises(ValueError, match="too much"):
                compiled(torch.full((2,), value))
        else:
            assert compiled(torch.full((2,), value))[1] is False
        assert torch.backends.cudnn.enabled
    assert [c.hits for c in magpy_core.captures(compiled)] == [0, 1] and "MP118" not in codes(compiled)
    with torch.backends.cudnn.flags(enabled=False):
        assert compiled(torch.ones(2))[1] is False
        assert not torch.backends.cudnn.enabled


def test_a_setting_that_was_so_before_is_guarded() -> None:
    def region(x: torch.Tensor) -> torch.Tensor:
        torch._C._set_cudnn_benchmark(True)
        return x * 2

    compiled = magpy_core.compile(region, backend="eager")
    with torch.backends.cudnn.flags(enabled=True, benchmark=True):
        for _ in range(2):
            compiled(torch.ones(2))
        assert [c.hits for c in magpy_core.captures(compiled)] == [1]
        torch.backends.cudnn.benchmark = False
        compiled(torch.ones(2))
        assert torch.backends.cudnn.benchmark


@pytest.mark.parametrize("name", ["cudnn", "mkldnn"])
def test_a_region_that_leaves_a_setting_changed_is_refused(name: str) -> None:
    backend: Any = getattr(torch.backends, name)
    setting = "benchmark" if name == "cudnn" else "enabled"

    def region(x: torch.Tensor, value: bool) -> torch.Tensor:
        backend.set_flags(**{f"_{setting}": value})
        return x * 2

    kept = getattr(backend, setting)
    compiled = magpy_core.compile(region, backend="eager")
    try:
        for value in (not kept, kept, not kept, not kept):
            assert compiled(torch.ones(2), value).tolist() == [2.0, 2.0]
            assert getattr(backend, setting) is value
    finally:
        backend.set_flags(**{f"_{setting}": kept})
    assert magpy_core.captures(compiled) == [] and codes(compiled)


class Lazy(nn.Module):
    made = 0

    def __init__(self, always: bool) -> None:
        super().__init__()
        self.inner = nn.Linear(2, 2)
        self.always = always

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.always or not self.inner._forward_hooks:
            Lazy.made += 1
            self.inner.register_forward_hook(lambda module, given, out: out + 1)
        result: torch.Tensor = self.inner(x)
        return result


def test_what_the_first_call_sets_up_is_no_break() -> None:
    net = Lazy(always=False)
    compiled = magpy_core.compile(net, backend="eager", fullgraph=True)
    for _ in range(4):
        assert torch.equal(compiled(torch.ones(1, 2)), net.inner(torch.ones(1, 2)))
    assert [c.hits for c in magpy_core.captures(compiled)] == [2] and "MP110" not in codes(compiled)


def test_what_every_call_sets_up_is_one() -> None:
    compiled = magpy_core.compile(Lazy(always=True), backend="eager", fullgraph=True)
    with pytest.raises(magpy_core.GraphBreak, match="MP110"):
        for _ in range(4):
            compiled(torch.ones(1, 2))


class Grows(nn.Module):
    """Makes the layer it needs at the first call, or, without ``keep``, at every call."""

    def __init__(self, keep: bool) -> None:
        super().__init__()
        self.keep = keep
        self.layers: dict[int, nn.Module] = {}

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if not self.keep or x.shape[1] not in self.layers:
            layer = nn.Linear(x.shape[1], 2)
            nn.init.ones_(layer.weight.data)
            nn.init.zeros_(layer.bias.data)
            self.layers[x.shape[1]] = layer
            self.add_module(f"layer_{x.shape[1]}", layer)
        result: torch.Tensor = self.layers[x.shape[1]](x)
        return result


@pytest.mark.parametrize("dynamic", [None, True])
def test_a_layer_made_at_the_first_call_is_no_break(dynamic: bool | None) -> None:
    net = Grows(keep=True)
    compiled = magpy_core.compile(net, backend="eager", fullgraph=True, dynamic=dynamic)
    results = [compiled(torch.full((1, 3), float(n))) for n in range(5)]
    assert [r.tolist() for r in results] == [[[3.0 * n, 3.0 * n]] for n in range(5)]
    assert [c.hits for c in magpy_core.captures(compiled)] == [3]
    results[-1].sum().backward()
    assert net.layer_3.weight.grad.tolist() == [[4.0] * 3] * 2  # type: ignore[union-attr]


@pytest.mark.parametrize("dynamic", [None, True])
def test_a_layer_made_at_every_call_is_one(dynamic: bool | None) -> None:
    compiled = magpy_core.compile(Grows(keep=False), backend="eager", dynamic=dynamic)
    for n in range(4):
        assert compiled(torch.full((1, 3), float(n))).tolist() == [[3.0 * n, 3.0 * n]]
    assert magpy_core.captures(compiled) == [] and "MP118" in codes(compiled)


class Chosen(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        return x[x > 0] * 2

    @staticmethod
    def backward(ctx: Any, *grads: torch.Tensor) -> None:
        return None


def test_a_function_that_gives_another_shape_is_captured_again() -> None:
    def region(x: torch.Tensor) -> Any:
        y = Chosen.apply(x)  # type: ignore[no-untyped-call]
        return y, y.shape[0]

    compiled = magpy_core.compile(region, backend="eager")
    for values in ([1.0, 2.0], [3.0, 4.0], [1.0, -1.0], [5.0, -5.0]):
        expected = [v * 2 for v in values if v > 0]
        y, n = compiled(torch.tensor(values))
        assert y.tolist() == expected and n == len(expected)
    assert [c.hits for c in magpy_core.captures(compiled)] == [1, 1]
