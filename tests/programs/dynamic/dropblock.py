"""Trains a small ResNet with DropBlock, whose probability follows a schedule that NumPy makes."""

from __future__ import annotations

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from tests.programs.dynamic.program import Program, generator


class DropBlock2D(nn.Module):
    def __init__(self, block_size: int) -> None:
        super().__init__()
        self.block_size = block_size
        self.drop_prob = 0.0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if not self.training or self.drop_prob == 0.0:
            return x
        gamma = self.drop_prob / self.block_size**2
        mask = (torch.rand(x.shape[0], *x.shape[2:]) < gamma).float()
        if mask.sum() == 0:  # nothing is dropped this time
            return x
        block = F.max_pool2d(mask[:, None], self.block_size, stride=1, padding=self.block_size // 2)
        if self.block_size % 2 == 0:
            block = block[:, :, :-1, :-1]
        keep = 1 - block
        return x * keep * (keep.numel() / keep.sum())


class Scheduled(nn.Module):
    def __init__(self, drop: DropBlock2D, stop: float, steps: int) -> None:
        super().__init__()
        self.drop = drop
        self.i = 0
        self.values = np.concatenate([np.zeros(2), np.linspace(start=0.0, stop=stop, num=steps)])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.drop(x)

    def step(self) -> None:
        if self.i < len(self.values):
            self.drop.drop_prob = float(self.values[self.i])
        self.i += 1


class Net(nn.Module):
    def __init__(self, width: int = 24) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, width, 3, padding=1)
        self.blocks = nn.ModuleList(
            nn.Sequential(nn.Conv2d(width, width, 3, padding=1), nn.BatchNorm2d(width), nn.ReLU()) for _ in range(4)
        )
        self.drops = nn.ModuleList(Scheduled(DropBlock2D(size), 0.06, 30) for size in (5, 4))
        self.fc = nn.Linear(width, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.stem(x)
        for i, block in enumerate(self.blocks):
            x = x + block(x)
            if i >= 2:
                x = self.drops[i - 2](x)
            if i == 1:
                x = F.max_pool2d(x, 2)
        return self.fc(x.mean((2, 3)))


def batch(i: int) -> tuple[torch.Tensor, torch.Tensor]:
    g = generator(i)
    return torch.randn(4, 3, 24, 24, generator=g), torch.randint(10, (4,), generator=g)


def program() -> Program:
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)

    def train(pair: tuple[torch.Tensor, torch.Tensor]) -> torch.Tensor:
        x, y = pair
        for drop in model.drops:
            drop.step()
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss.detach()

    return Program(model, train, batch, trains=True)
