"""Python's numbers that vary from call to call."""

from __future__ import annotations

import torch
from torch import nn

from tests.programs.kernels.program import Case, leaf, program


@program(warm=2)
def factor() -> Case:
    def region(x: torch.Tensor, factor: float) -> torch.Tensor:
        return x.sin() * factor + factor / 3

    return Case(region, lambda i: (leaf(5, 9), 0.1 * (i + 1)))


@program(warm=2)
def whole_number() -> Case:
    def region(x: torch.Tensor, n: int) -> torch.Tensor:
        return (x + n).cos() * (n % 7)

    return Case(region, lambda i: (leaf(5, 9), 3 + 2 * i))


@program(warm=2, combined=True)
def learning_rate() -> Case:
    model = nn.Linear(7, 5)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)

    def region(rate: float, *gradients: torch.Tensor) -> None:
        for group in optimizer.param_groups:
            group["lr"] = rate
        for parameter, gradient in zip(model.parameters(), gradients, strict=True):
            parameter.grad = gradient
        optimizer.step()

    def args(i: int) -> tuple[float | torch.Tensor, ...]:
        return 0.1 / (i + 1), *(torch.randn_like(each) for each in model.parameters())

    return Case(region, args, {"model": model})


@program()
def number_from_a_tensor() -> Case:
    def region(x: torch.Tensor) -> tuple[torch.Tensor, float]:
        total = x.sum().item()
        return x * total, total

    return Case(region, lambda i: (torch.randn(4, 6),))
