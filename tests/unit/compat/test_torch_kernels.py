"""Operations that Inductor gets wrong for some values: a call without them is compared, and the next has them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

import magpy_core
from magpy_core.regions.api import region_of
from magpy_core.regions.reports.summary import summarise

NAN = float("nan")


def served(function: Callable[..., Any], first: tuple[torch.Tensor, ...], then: tuple[torch.Tensor, ...]) -> Any:
    """What compiled code gives for ``then``, after it has served ``first``."""
    compiled: Any = magpy_core.compile(function, wait=True)
    for _ in range(3):
        compiled(*first)
    region = region_of(compiled)
    hits, verified = region.hits, summarise(region).verified
    result = compiled(*then)
    assert hits and region.hits == hits + 1 and verified == 1, region.findings
    return result


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [torch.int8, torch.uint8], ids=str)
def test_extremes_of_bytes(dtype: torch.dtype) -> None:
    def extremes(x: torch.Tensor) -> tuple[Any, ...]:
        ends = (*x.min(1), *x.max(1), *torch.aminmax(x), x.amin((0, 1)), x.amax(0, keepdim=True))
        return (*ends, x.min(), x.max(), x.argmin(), x.argmax(1), x.argmin(0, keepdim=True))

    ordinary = torch.arange(54).view(3, 18).to(dtype)
    away = [(torch.arange(54).view(3, 18) % 17 + 5).to(dtype)]
    if dtype is torch.int8:
        away.append(-away[0])
    for given in away:
        for result, expected in zip(served(extremes, (ordinary,), (given,)), extremes(given), strict=True):
            assert result.dtype is expected.dtype and torch.equal(result, expected)


@pytest.mark.slow
@pytest.mark.parametrize("function", [torch.sinh, torch.cosh])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16], ids=str)
def test_hyperbolic_functions_of_large_numbers(function: Callable[..., torch.Tensor], dtype: torch.dtype) -> None:
    edge = 710.0 if dtype is torch.float64 else 89.0
    large = torch.linspace(edge - 0.6, edge + 0.3, 32, dtype=torch.float64).to(dtype)
    result = served(lambda x: function(x) / 4, (torch.linspace(-3, 3, 32).to(dtype),), (large,))
    torch.testing.assert_close(result, function(large) / 4)


@pytest.mark.slow
@pytest.mark.parametrize("factors", [{"beta": 0}, {"alpha": 0}, {"beta": 0.0, "alpha": 2}], ids=str)
def test_a_product_times_zero(factors: dict[str, float]) -> None:
    def product(x: torch.Tensor, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return torch.addmm(x, a, b, **factors) * 2

    x, a, b = torch.randn(4), torch.randn(1, 4), torch.randn(4, 4)
    bad = (x, torch.full((1, 4), NAN), b) if factors.get("beta", 1) else (torch.full((4,), NAN), a, b)
    torch.testing.assert_close(served(product, (x, a, b), bad), product(*bad))


@pytest.mark.slow
def test_a_factor_that_varies() -> None:
    def product(x: torch.Tensor, a: torch.Tensor, b: torch.Tensor, beta: float) -> torch.Tensor:
        return torch.addmm(x, a, b, beta=beta)

    compiled: Any = magpy_core.compile(product, wait=True)
    x, a, b = torch.randn(4), torch.randn(1, 4), torch.randn(4, 4)
    for beta in (0.5, 0.25, 2.0, 0.125, 1.5):
        torch.testing.assert_close(compiled(x, a, b, beta), product(x, a, b, beta))
    x = torch.full((4,), NAN)
    torch.testing.assert_close(compiled(x, a, b, 0.0), product(x, a, b, 0.0))
