"""Trains with fake quantization: Python reads each activation's range, keeps running scales and warms up without them."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

from tests.programs.dynamic.program import Program, generator

BITS, WARM_UP = 6, 2


class Round(torch.autograd.Function):
    """Straight-through: the gradient passes where nothing was clipped."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, scale: float) -> torch.Tensor:
        most = 2 ** (BITS - 1) - 1
        level = torch.round(x / scale)
        ctx.save_for_backward(level.abs() <= most)
        return level.clamp(-most, most) * scale

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor, None]:
        (inside,) = ctx.saved_tensors
        return gradient * inside, None


class Observer(nn.Module):
    def __init__(self, momentum: float = 0.1) -> None:
        super().__init__()
        self.momentum = momentum
        self.largest = 0.0
        self.seen = self.jumps = 0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        largest = x.detach().abs().max().item()
        self.seen += 1
        if self.largest == 0.0:
            self.largest = largest
        elif largest > 1.5 * self.largest:  # an outlier: follow at once
            self.largest = largest
            self.jumps += 1
        else:
            self.largest += self.momentum * (largest - self.largest)
        if self.seen <= WARM_UP:
            return x
        return Round.apply(x, self.largest / (2 ** (BITS - 1) - 1))


class QuantizedConv(nn.Module):
    def __init__(self, inside: int, outside: int, stride: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(inside, outside, 3, stride, 1, bias=False)
        self.bn = nn.BatchNorm2d(outside)
        self.input = Observer()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.input(x)
        weight = self.conv.weight
        scale = weight.detach().abs().max().item() / (2 ** (BITS - 1) - 1)
        x = F.conv2d(x, Round.apply(weight, scale), None, self.conv.stride, self.conv.padding)
        return F.relu(self.bn(x))


class QuantizedNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        shapes = [(3, 16, 1), (16, 32, 2), (32, 32, 1), (32, 64, 2)]
        self.layers = nn.ModuleList(QuantizedConv(*shape) for shape in shapes)
        self.fc = nn.Linear(64, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            x = layer(x)
        return self.fc(x.mean((2, 3)))


def batch(i: int) -> tuple[torch.Tensor, torch.Tensor]:
    g = generator(i)
    x = torch.randn(4, 3, 24, 24, generator=g)
    if i % 3 == 2:
        x = x * (1 + i % 7)
    return x, torch.randint(10, (4,), generator=g)


def program() -> Program:
    model = QuantizedNet()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)

    def train(pair: tuple[torch.Tensor, torch.Tensor]) -> torch.Tensor:
        x, y = pair
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss.detach()

    return Program(model, train, batch, trains=True)
