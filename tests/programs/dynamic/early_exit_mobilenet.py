"""A MobileNet with exits: a picture leaves at the first head that is confident enough."""

from __future__ import annotations

from itertools import pairwise

import torch
import torch.nn.functional as F
from torch import nn
from torch.optim.swa_utils import update_bn

from tests.programs.dynamic.program import Program, generator

CLASSES = 20


class InvertedResidual(nn.Module):
    def __init__(self, inside: int, outside: int, stride: int, expand: int = 4) -> None:
        super().__init__()
        hidden = inside * expand
        self.use_shortcut = stride == 1 and inside == outside
        self.layers = nn.Sequential(
            nn.Conv2d(inside, hidden, 1, bias=False), nn.BatchNorm2d(hidden), nn.ReLU6(),
            nn.Conv2d(hidden, hidden, 3, stride, 1, groups=hidden, bias=False), nn.BatchNorm2d(hidden), nn.ReLU6(),
            nn.Conv2d(hidden, outside, 1, bias=False), nn.BatchNorm2d(outside),
        )  # fmt: skip

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.use_shortcut:
            return x + self.layers(x)
        return self.layers(x)


class Head(nn.Module):
    def __init__(self, channels: int) -> None:
        super().__init__()
        self.norm = nn.BatchNorm1d(channels)
        self.out = nn.Linear(channels, CLASSES)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.out(self.norm(F.adaptive_avg_pool2d(x, 1).flatten(1)))


class EarlyExitMobileNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 16, 3, 2, 1, bias=False), nn.BatchNorm2d(16), nn.ReLU6())
        widths = (16, 24, 32, 48, 64)
        self.stages = nn.ModuleList(
            nn.Sequential(InvertedResidual(a, b, 2 if b in (24, 48) else 1), InvertedResidual(b, b, 1))
            for a, b in pairwise(widths)
        )
        self.heads = nn.ModuleList(Head(width) for width in widths[1:])
        self.thresholds = [0.9] * (len(widths) - 2)

    def every_head(self, x: torch.Tensor) -> list[torch.Tensor]:
        x = self.stem(x)
        found = []
        for stage, head in zip(self.stages, self.heads, strict=True):
            x = stage(x)
            found.append(head(x))
        return found

    def forward(self, x: torch.Tensor) -> list[torch.Tensor] | tuple[torch.Tensor, int]:
        if self.training:
            return self.every_head(x)
        x = self.stem(x)
        for depth, threshold in enumerate(self.thresholds):
            x = self.stages[depth](x)
            logits = self.heads[depth](x)
            if F.softmax(logits, dim=1).max() > threshold:
                return logits, depth
        return self.heads[-1](self.stages[-1](x)), len(self.thresholds)


def picture(i: int) -> torch.Tensor:
    g = generator(i)
    coarse = F.interpolate(torch.randn(1, 3, 5, 5, generator=g), size=64, mode="bilinear")
    return coarse * (0.3 + 2 * torch.rand(1, generator=g)) + 0.3 * torch.randn(1, 3, 64, 64, generator=g)


@torch.no_grad()
def trained() -> EarlyExitMobileNet:
    """As after training: normalized over data, with thresholds at which a third of what comes to an exit leaves there."""
    model = EarlyExitMobileNet()
    data = torch.cat([picture(-1 - i) for i in range(48)])
    for head in model.heads:
        head.out.weight.mul_(4)
    update_bn([data], model)
    model.eval()
    for depth, logits in enumerate(model.every_head(data)[:-1]):
        model.thresholds[depth] = F.softmax(logits, dim=1).amax(1).quantile(0.67).item()
    return model


def program() -> Program:
    model = trained()

    @torch.no_grad()
    def classify(x: torch.Tensor) -> tuple[torch.Tensor, int]:
        return model(x)

    return Program(model, classify, picture)
