"""SkipNet with feed-forward gates: each of twelve residual blocks has a small gate that may skip it."""

from __future__ import annotations

from itertools import pairwise

import torch
import torch.nn.functional as F
from torch import nn
from torch.optim.swa_utils import update_bn

from tests.programs.dynamic.program import Program, generator


class Residual(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(width, width, 3, padding=1, bias=False), nn.BatchNorm2d(width)
        self.conv2, self.bn2 = nn.Conv2d(width, width, 3, padding=1, bias=False), nn.BatchNorm2d(width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out = F.relu(self.bn1(self.conv1(x)))
        return F.relu(self.bn2(self.conv2(out)) + x)


class FeedforwardGate(nn.Module):
    """Pool, one convolution, one number: above zero, the block runs."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(width, 10, 3, stride=2)
        self.bn = nn.BatchNorm2d(10)
        self.score = nn.Linear(10, 1)
        self.score_bn = nn.BatchNorm1d(1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = F.relu(self.bn(self.conv(F.max_pool2d(x, 2))))
        return self.score_bn(self.score(x.mean((2, 3))))


class SkipNet(nn.Module):
    def __init__(self, widths: tuple[int, ...] = (16, 32, 64), blocks: int = 4) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, widths[0], 3, padding=1)
        self.transitions = nn.ModuleList(nn.Conv2d(a, b, 3, stride=2, padding=1) for a, b in pairwise(widths))
        self.groups = nn.ModuleList(nn.ModuleList(Residual(width) for _ in range(blocks)) for width in widths)
        self.gates = nn.ModuleList(nn.ModuleList(FeedforwardGate(width) for _ in range(blocks)) for width in widths)
        self.fc = nn.Linear(widths[-1], 10)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, list[bool]]:
        x = self.stem(x)
        taken = []
        for level, (group, gates) in enumerate(zip(self.groups, self.gates, strict=True)):
            if level > 0:
                x = self.transitions[level - 1](x)
            for block, gate in zip(group, gates, strict=True):
                score = gate(x)
                if self.training:
                    soft = torch.sigmoid(score)[:, :, None, None]
                    x = soft * block(x) + (1 - soft) * x
                    continue
                runs = bool(score > 0)
                if runs:
                    x = block(x)
                taken.append(runs)
        return self.fc(x.mean((2, 3))), taken


def picture(i: int) -> torch.Tensor:
    g = generator(i)
    coarse = F.interpolate(torch.randn(1, 3, 4, 4, generator=g), size=32, mode="bilinear")
    return coarse * (0.3 + 1.5 * torch.rand(1, generator=g)) + 0.4 * torch.rand(1, generator=g) * torch.randn(
        1, 3, 32, 32, generator=g
    )


def program() -> Program:
    model = SkipNet()
    with torch.no_grad():
        data = torch.cat([picture(-1 - i) for i in range(48)])
        update_bn([data], model)
    model.eval()

    @torch.no_grad()
    def classify(x: torch.Tensor) -> tuple[torch.Tensor, list[bool]]:
        return model(x)

    return Program(model, classify, picture)
