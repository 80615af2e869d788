"""SDPoint: in training, a random block and ratio are drawn each step, and features are downsampled after that block."""

from __future__ import annotations

import random

import torch
import torch.nn.functional as F
from torch import nn

from tests.programs.dynamic.program import Program, generator

RATIOS = (0.5, 0.75)


class PreActBlock(nn.Module):
    def __init__(self, inside: int, outside: int, stride: int) -> None:
        super().__init__()
        self.bn1, self.bn2 = nn.BatchNorm2d(inside), nn.BatchNorm2d(outside)
        self.conv1 = nn.Conv2d(inside, outside, 3, stride, 1, bias=False)
        self.conv2 = nn.Conv2d(outside, outside, 3, 1, 1, bias=False)
        self.shortcut = nn.Conv2d(inside, outside, 1, stride, bias=False) if inside != outside else nn.Identity()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out = F.relu(self.bn1(x))
        shortcut = self.shortcut(out)
        out = self.conv1(out)
        return self.conv2(F.relu(self.bn2(out))) + shortcut


class SDPointNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 16, 3, padding=1, bias=False)
        shapes = [(16, 16, 1), (16, 32, 2), (32, 32, 1), (32, 64, 2), (64, 64, 1)]
        self.blocks = nn.ModuleList(PreActBlock(*shape) for shape in shapes)
        self.bn = nn.BatchNorm2d(64)
        self.fc = nn.Linear(64, 10)
        self.point, self.ratio = -1, 1.0

    def stochastic_downsampling(self) -> None:
        """Draw the point and the ratio of this step; -1 is none."""
        self.point = random.randint(-1, len(self.blocks) - 1)
        self.ratio = random.choice(RATIOS)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.training:
            self.stochastic_downsampling()
        x = self.conv(x)
        for i, block in enumerate(self.blocks):
            x = block(x)
            if i == self.point:
                x = F.adaptive_avg_pool2d(x, max(1, round(x.shape[2] * self.ratio)))
        return self.fc(F.relu(self.bn(x)).mean((2, 3)))


def batch(i: int) -> tuple[torch.Tensor, torch.Tensor]:
    g = generator(i)
    return torch.randn(4, 3, 24, 24, generator=g), torch.randint(10, (4,), generator=g)


def program() -> Program:
    model = SDPointNet()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9, weight_decay=1e-4)

    def train(pair: tuple[torch.Tensor, torch.Tensor]) -> torch.Tensor:
        x, y = pair
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss.detach()

    return Program(model, train, batch, trains=True)
