"""Updates of optimizers, with loops over the parameters that become combined kernels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from tests.programs.kernels.program import Case, program


def _updates(optimizer_of: Callable[[Any], torch.optim.Optimizer]) -> Case:
    model = nn.Sequential(nn.Linear(17, 9), nn.Linear(9, 5))
    optimizer = optimizer_of(model.parameters())

    def region(*gradients: torch.Tensor) -> None:
        for parameter, gradient in zip(model.parameters(), gradients, strict=True):
            parameter.grad = gradient
        optimizer.step()

    return Case(region, lambda i: tuple(torch.randn_like(each) for each in model.parameters()), {"model": model})


@program(combined=True)
def sgd() -> Case:
    return _updates(lambda parameters: torch.optim.SGD(parameters, lr=0.1, weight_decay=0.01))


@program(warm=2, combined=True)
def sgd_with_momentum() -> Case:
    return _updates(lambda parameters: torch.optim.SGD(parameters, lr=0.1, momentum=0.9, nesterov=True))


@program(warm=2, combined=True)
def adam() -> Case:
    return _updates(lambda parameters: torch.optim.Adam(parameters, lr=0.01))


@program(warm=2, combined=True)
def adamw() -> Case:
    return _updates(lambda parameters: torch.optim.AdamW(parameters, lr=0.01, amsgrad=True))


@program(warm=2)
def rmsprop_one_kernel_each() -> Case:
    return _updates(lambda parameters: torch.optim.RMSprop(parameters, lr=0.01, momentum=0.5))


@program(combined=True)
def clipped_gradients() -> Case:
    model = nn.Sequential(nn.Linear(17, 9), nn.Linear(9, 5))

    def region(*gradients: torch.Tensor) -> torch.Tensor:
        for parameter, gradient in zip(model.parameters(), gradients, strict=True):
            parameter.grad = gradient.clone()
        return nn.utils.clip_grad_norm_(model.parameters(), 1.0)

    return Case(region, lambda i: tuple(torch.randn_like(each) for each in model.parameters()), {"model": model})
