"""Half precision: casts, and what kernels compute in float32."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn

from tests.programs.kernels.program import Case, leaf, program

_BF16, _HALF = (2e-2, 2e-2), (3e-3, 3e-3)


@program(tolerance=_BF16)
def bfloat16_chain() -> Case:
    def region(x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return F.silu(x) * y, x.float().exp(), (x + 1).softmax(-1)

    return Case(region, lambda i: (leaf(6, 20, dtype=torch.bfloat16), leaf(6, 20, dtype=torch.bfloat16)))


@program(tolerance=_HALF)
def float16_chain() -> Case:
    def region(x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return F.gelu(x) + y, x.sum(1), (x.float() * 2).half()

    return Case(region, lambda i: (leaf(6, 20, dtype=torch.float16), leaf(6, 20, dtype=torch.float16)))


@program(tolerance=(0.0, 0.0))
def casts() -> Case:
    """To each type once: of two casts in a row, Inductor computes only the last, on all devices."""

    def region(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        y = x * 1
        return y.bfloat16(), y.half(), y.double(), y.int(), y.bool(), y.to(torch.int8)

    return Case(region, lambda i: (torch.randn(300) * 50,))


@program(tolerance=_BF16)
def bfloat16_norm() -> Case:
    model = nn.LayerNorm(32).bfloat16()
    return Case(lambda x: model(x), lambda i: (leaf(7, 32, dtype=torch.bfloat16),), {"model": model})


@program(tolerance=(3e-2, 3e-2))
def autocast() -> Case:
    model = nn.Sequential(nn.Linear(16, 24), nn.GELU(), nn.Linear(24, 8))

    def region(x: torch.Tensor) -> torch.Tensor:
        with torch.autocast("cpu", torch.bfloat16):
            mean: torch.Tensor = model(x).float().square().mean()
            return mean

    return Case(region, lambda i: (leaf(10, 16),), {"model": model})


@program()
def float64() -> Case:
    return Case(lambda x: x.sin().softmax(1).log(), lambda i: (leaf(5, 18, dtype=torch.float64),))


@program()
def complex_parts() -> Case:
    def region(x: torch.Tensor) -> torch.Tensor:
        return torch.view_as_real(torch.view_as_complex(x * 2) * (1 + 2j)) + 1

    return Case(region, lambda i: (torch.randn(9, 2),))
