"""Random numbers in compiled graphs: forward and backward draw what eager draws, where eager draws it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F

import magpy_core
from magpy_core.regions.api import region_of

COMPILERS = pytest.mark.parametrize("backend", ["aot_eager", pytest.param("inductor", marks=pytest.mark.slow)])


class DrawsInBackward(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        return x * torch.rand(3)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        return grads[0] * torch.rand(3)


class DrawsForNothing(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        return x * 2

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        torch.rand(3)
        return grads[0] * 3


def apply(function: Any) -> Callable[[torch.Tensor], torch.Tensor]:
    return lambda x: function.apply(x)


PROGRAMS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "two draws": lambda x: F.dropout(x, 0.5) + torch.rand(3) * x + torch.randn(3),
    "a draw nobody uses": lambda x: (torch.rand(3), x * 2)[1],
    "a draw of a saved value": lambda x: F.dropout(x / (x + 1), 0.5),
    "rrelu": lambda x: F.rrelu(x - 2, training=True),
    "bernoulli": lambda x: torch.bernoulli(x / 10) * x,
    "pooling": lambda x: F.fractional_max_pool2d(x[None, None], 2, output_size=1),
    "attention": lambda x: F.scaled_dot_product_attention(x[None], x[None], x[None], dropout_p=0.3),
    "backward": apply(DrawsInBackward),
    "backward, for nothing": apply(DrawsForNothing),
    "backward between draws": lambda x: F.dropout(DrawsInBackward.apply(F.dropout(x, 0.5)), 0.5),
    "dropout of everything": lambda x: F.dropout(x, 1.0) + torch.rand(3),
    "attention without anything": lambda x: F.scaled_dot_product_attention(x[None], x[None], x[None], dropout_p=1.0),
}


def calls(function: Callable[[torch.Tensor], torch.Tensor]) -> list[Any]:
    torch.manual_seed(0)
    told: list[Any] = []
    for _ in range(4):
        x = torch.arange(9.0).reshape(3, 3).div(9).requires_grad_()
        result = function(x)
        told += [result.detach(), torch.get_rng_state()]
        result.abs().sum().backward()
        told += [x.grad, torch.get_rng_state()]
    return told


@COMPILERS
@pytest.mark.parametrize("name", PROGRAMS)
def test_the_random_stream_is_eagers(name: str, backend: str) -> None:
    compiled = magpy_core.compile(PROGRAMS[name], backend=backend, same_random=True)
    for expected, got in zip(calls(PROGRAMS[name]), calls(compiled), strict=True):
        torch.testing.assert_close(got, expected)
    left = [f.code for f in region_of(compiled).findings.values()]
    assert region_of(compiled).hits or {"MP902", "MP916"} & {*left}
    if backend == "aot_eager" and name != "rrelu":
        assert ("MP916" in left) == (name in ("dropout of everything", "attention without anything"))


@COMPILERS
def test_a_rate_that_varies_comes_to_one(backend: str) -> None:
    def region(x: torch.Tensor, rate: float) -> torch.Tensor:
        return F.dropout(x, rate)

    compiled = magpy_core.compile(region, backend=backend, same_random=True)
    x = torch.tensor([1.0, float("inf")])
    for rate in (0.5, 0.25, 0.75, 1.0, 0.0, 1.0, 0.125):
        outcomes = []
        for function in (region, compiled):
            torch.manual_seed(1)
            outcomes.append((function(x, rate), torch.get_rng_state()))
        torch.testing.assert_close(outcomes[1], outcomes[0], equal_nan=True)
