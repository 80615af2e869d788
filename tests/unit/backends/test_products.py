"""Sums with a scaled matrix product under Inductor, which drops the scale where nobody helps it."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

import magpy_core
from magpy_core.regions.api import region_of

CASES: dict[str, Callable[[torch.Tensor, torch.Tensor, torch.Tensor], torch.Tensor]] = {
    "function": lambda c, a, b: torch.add(c * 0.9, a @ b, alpha=0.1),
    "in place": lambda c, a, b: (c * 0.9).add_(a @ b, alpha=0.1),
    "to a product": lambda c, a, b: torch.add(a @ b, c, alpha=0.1),
    "linear": lambda c, a, b: torch.add(c, torch.nn.functional.linear(a, b), alpha=0.5),
    "difference": lambda c, a, b: torch.sub(c, a @ b, alpha=0.3),
}


@pytest.mark.slow
@pytest.mark.parametrize("learns", [False, True])
@pytest.mark.parametrize("name", CASES)
def test_the_scale_is_kept(name: str, learns: bool) -> None:
    torch.manual_seed(0)
    compiled = magpy_core.compile(CASES[name], backend="inductor")
    for _ in range(3):
        c, a, b = torch.randn(4, 4), torch.randn(4, 4, requires_grad=learns), torch.randn(4, 4)
        torch.testing.assert_close(compiled(c, a, b), CASES[name](c, a, b), rtol=1e-4, atol=1e-5)
    assert region_of(compiled).hits
