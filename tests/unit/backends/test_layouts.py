"""Writes to tensors that aren't contiguous: what is computed from them afterwards has eager's strides, compiled too."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F

import magpy_core
from magpy_core.regions.api import region_of

LAYOUTS: dict[str, Callable[[], torch.Tensor]] = {
    "transposed": lambda: torch.full((3, 2), 1.5).t(),
    "with gaps": lambda: torch.full((2, 6), 1.5)[:, ::2],
    "part of a transposed": lambda: torch.full((5, 4), 1.5)[1:4, 2:4].t(),
}
Write = Callable[[torch.Tensor, torch.Tensor], Any]
KEPT: dict[str, Write] = {
    "copy_": lambda b, x: b.copy_(x),
    "add_": lambda b, x: b.add_(x),
    "mul_": lambda b, x: b.mul_(2),
    "setitem": lambda b, x: b.__setitem__(0, x[0]),
    "relu": lambda b, x: F.relu(b, inplace=True),
    "of a list": lambda b, x: torch._foreach_add_([b], [x]),
    "row": lambda b, x: b[0].copy_(x[1]),
}
LEFT: dict[str, Write] = {
    "setitem of a mask": lambda b, x: b.__setitem__(x > 2, 0.0),
    "normal_": lambda b, x: b.normal_(),
    "scatter_": lambda b, x: b.scatter_(0, torch.zeros(2, 3, dtype=int), x),
    "masked_fill_": lambda b, x: b.masked_fill_(x > 2, 0),
    "bernoulli_": lambda b, x: b.bernoulli_(),
    "index_copy_": lambda b, x: b.index_copy_(0, torch.tensor([1, 0]), x),
    "index_add_": lambda b, x: b.index_add_(0, torch.tensor([1, 0]), x),
    "out": lambda b, x: torch.add(x, 1, out=b),
    "cumsum_": lambda b, x: b.cumsum_(0),
    "tril_": lambda b, x: b.tril_(),
    "addmm_": lambda b, x: b.addmm_(torch.eye(2), x),
    "dropout": lambda b, x: F.dropout(b, 0.5, inplace=True),
    "fill_diagonal_": lambda b, x: b.fill_diagonal_(3.0),
}


def told(tensors: Any) -> Any:
    return [(t.shape, t.stride(), t.tolist()) for t in tensors]


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", [*KEPT, *LEFT])
def test_strides_and_values_after_a_write(name: str, layout: str) -> None:
    write = {**KEPT, **LEFT}[name]

    def given(b: torch.Tensor, x: torch.Tensor) -> Any:
        write(b, x)
        return b * 1, b + x, b, b.relu(), torch.zeros_like(b)

    def made(b: torch.Tensor, x: torch.Tensor) -> Any:
        b = LAYOUTS[layout]()
        write(b.mul_(x), x)
        return b * 1, b + x, b, b.relu(), torch.zeros_like(b)

    for region in (given, made):
        compiled = magpy_core.compile(region, backend="aot_eager", same_random=True)
        for k in range(3):
            outcomes = []
            for function in (region, compiled):
                torch.manual_seed(0)
                outcomes.append(told(function(LAYOUTS[layout](), torch.arange(6.0).reshape(2, 3) + k)))
            assert outcomes[1] == outcomes[0]
        assert bool(region_of(compiled).hits) == (name in KEPT)


@pytest.mark.parametrize(
    "nothing", [lambda a: F.dropout(a, 0.5, False), lambda a: F.dropout(a, 0.0), lambda a: a.contiguous()]
)
@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_an_operation_that_gives_its_input_back_shares_its_memory(nothing: Any, backend: str) -> None:
    def region(x: torch.Tensor) -> Any:
        a = x + 1
        view = a.view(-1)
        y = nothing(a)
        y.add_(1)
        return view * 1, a * 1, y

    compiled = magpy_core.compile(region, backend=backend)
    for k in range(3):
        x = torch.arange(6.0).reshape(2, 3) + k
        assert told(compiled(x)) == told(region(x))
    assert region_of(compiled).hits
