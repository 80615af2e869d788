"""A ResNet that logs its activations with the time at each training step, and warns of a layer that explodes or dies."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

import torch
import torch.nn.functional as F
from torch import nn

from tests.programs.dynamic.program import Program, generator


@dataclass
class Entry:
    layer: str
    mean: float
    std: float
    time: float = field(compare=False)


class ResidualBlock(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.conv1, self.conv2 = (nn.Conv2d(width, width, 3, padding=1, bias=False) for _ in range(2))
        self.bn1, self.bn2 = nn.BatchNorm2d(width), nn.BatchNorm2d(width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.relu(x + self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x))))))


class LoggingResNet(nn.Module):
    def __init__(self, width: int = 24, depth: int = 4) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, width, 3, stride=2, padding=1)
        self.blocks = nn.ModuleList(ResidualBlock(width) for _ in range(depth))
        self.fc = nn.Linear(width, 10)
        self.log: list[Entry] = []
        self.warnings: list[str] = []
        self.steps = 0

    def record(self, layer: str, x: torch.Tensor) -> None:
        entry = Entry(layer, x.mean().item(), x.std().item(), time.time())
        self.log.append(entry)
        if entry.std > 1.2:
            self.warnings.append(f"step {self.steps}: {layer} explodes")
        elif entry.std < 0.45:
            self.warnings.append(f"step {self.steps}: {layer} dies")

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.steps += 1
        x = self.stem(x)
        self.record("stem", x)
        for number, block in enumerate(self.blocks):
            x = block(x)
            self.record(f"block {number}", x)
        return self.fc(x.mean((2, 3)))


def batch(i: int) -> tuple[torch.Tensor, torch.Tensor]:
    g = generator(i)
    contrast = 0.2 + 2.5 * torch.rand(1, generator=g)
    return contrast * torch.randn(4, 3, 32, 32, generator=g), torch.randint(10, (4,), generator=g)


def program() -> Program:
    model = LoggingResNet()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)

    def train(pair: tuple[torch.Tensor, torch.Tensor]) -> torch.Tensor:
        x, y = pair
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss.detach()

    return Program(model, train, batch, trains=True)
