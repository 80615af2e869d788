"""Sizes of what opaque calls give (custom functions, scripts, checkpoints), for inputs of varying length."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.utils.checkpoint import checkpoint

import magpy_core
from magpy_core.runtime.api import region_of


class Positive(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(x)
        return x[x > 2] * 2

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        (x,) = ctx.saved_tensors
        out = torch.zeros_like(x)
        out[x > 2] = grads[0] * 2
        return out


class Both(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> Any:
        return x * 2, x[x > 2]

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        return grads[0]


class Shorter(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        return x[1:] * 2

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        return torch.cat([torch.zeros(1), grads[0] * 2])


class Chosen(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x[x > 2] * 2


CALLS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "function": lambda x: Positive.apply(x),  # type: ignore[no-any-return, no-untyped-call]
    "one result of a function": lambda x: Both.apply(x)[1],  # type: ignore[no-any-return, no-untyped-call]
    "function of sizes alone": lambda x: Shorter.apply(x),  # type: ignore[no-any-return, no-untyped-call]
    "script": torch.jit.script(Chosen()),
    "checkpoint": lambda x: checkpoint(lambda v: v[v > 2] * 2, x, use_reentrant=False),  # type: ignore[no-any-return]
    "mask": lambda x: x[x > 2],
}


@pytest.mark.parametrize("learning", [True, False])
@pytest.mark.parametrize("name", CALLS)
def test_sizes_that_follow_from_data(name: str, learning: bool) -> None:
    """A capture for any length took the size that was recorded for that of every call."""

    def region(x: torch.Tensor) -> Any:
        y = CALLS[name](x)
        return y * 2, y.shape[0], len(y), y.numel()

    compiled = magpy_core.compile(region, backend="eager")
    for k, length in enumerate((6, 12, 12, 12, 6, 9, 9, 30)):
        torch.manual_seed(k)
        x = (torch.rand(length) * 4).requires_grad_(learning)
        expected, got = region(x), compiled(x)
        assert got[1:] == expected[1:] and torch.equal(got[0], expected[0])
    told = [f.message for f in region_of(compiled).findings.values()]
    assert region_of(compiled).hits or name == "checkpoint", told  # with torch 2.11 that is not captured
