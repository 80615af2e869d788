"""A VGG with side branches: inference stops where the entropy of a branch's prediction is low (as in BranchyNet)."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn
from torch.optim.swa_utils import update_bn

from tests.programs.dynamic.program import Program, generator

LAYOUT = [[32, 32], [64, 64], [96, 96], [128, 128]]
CLASSES = 10


def vgg_block(inside: int, widths: list[int]) -> nn.Sequential:
    layers: list[nn.Module] = []
    for width in widths:
        layers += [nn.Conv2d(inside, width, 3, padding=1), nn.BatchNorm2d(width), nn.ReLU()]
        inside = width
    return nn.Sequential(*layers, nn.MaxPool2d(2))


def entropy(logits: torch.Tensor) -> torch.Tensor:
    log_p = F.log_softmax(logits, dim=-1)
    return -(log_p.exp() * log_p).sum(-1)


class BranchyVGG(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        inside = [3] + [widths[-1] for widths in LAYOUT[:-1]]
        self.blocks = nn.ModuleList(map(vgg_block, inside, LAYOUT))
        self.branches = nn.ModuleList(
            nn.Sequential(nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.BatchNorm1d(4 * w[-1]), nn.Linear(4 * w[-1], CLASSES))
            for w in LAYOUT[:-1]
        )
        self.classifier = nn.Sequential(nn.Flatten(), nn.Linear(4 * LAYOUT[-1][-1], 128), nn.ReLU(), nn.Linear(128, CLASSES))
        self.limits: list[float] = []
        self.exits = [0] * len(LAYOUT)

    def forward(self, x: torch.Tensor) -> torch.Tensor | list[torch.Tensor]:
        outputs = []
        for level, block in enumerate(self.blocks):
            x = block(x)
            if level == len(self.branches):
                break
            logits = self.branches[level](x)
            if self.training:
                outputs.append(logits)
            elif entropy(logits).item() < self.limits[level]:
                self.exits[level] += 1
                return logits
        logits = self.classifier(x)
        if self.training:
            return [*outputs, logits]
        self.exits[-1] += 1
        return logits


def picture(i: int) -> torch.Tensor:
    g = generator(i)
    contrast, noise = torch.rand(2, generator=g)
    x = torch.linspace(-3, 3, 32)
    waves = torch.sin(x * (1 + 3 * torch.rand(3, 1, generator=g)) + 6 * torch.rand(3, 1, generator=g))
    image = waves[:, :, None] * waves.flip(0)[:, None, :]
    return ((0.2 + 2 * contrast) * image + noise * torch.randn(3, 32, 32, generator=g))[None]


def program() -> Program:
    model = BranchyVGG()
    with torch.no_grad():
        for branch in model.branches:
            branch[-1].weight.mul_(3)
        data = torch.cat([picture(-1 - i) for i in range(48)])
        update_bn([data], model)
        model.eval()
        for block, branch in zip(model.blocks, model.branches, strict=False):
            data = block(data)
            model.limits.append(entropy(branch(data)).quantile(0.3).item())  # about a third leave there

    @torch.no_grad()
    def classify(x: torch.Tensor) -> torch.Tensor:
        return model(x)

    return Program(model, classify, picture)
