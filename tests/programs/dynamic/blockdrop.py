"""BlockDrop: a small policy network looks at the picture once and says which blocks of a residual net are to run."""

from __future__ import annotations

from itertools import pairwise

import torch
import torch.nn.functional as F
from torch import nn
from torch.optim.swa_utils import update_bn

from tests.programs.dynamic.program import Program, generator

WIDTHS = (24, 48, 96)
PER_STAGE = 4


class Block(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(width, width, 3, padding=1, bias=False), nn.BatchNorm2d(width), nn.ReLU(),
            nn.Conv2d(width, width, 3, padding=1, bias=False), nn.BatchNorm2d(width),
        )  # fmt: skip

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.body(x)


class Policy(nn.Module):
    """A probability to run for each block."""

    def __init__(self, actions: int) -> None:
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(3, 16, 5, stride=2, padding=2), nn.ReLU(), nn.Conv2d(16, 32, 3, stride=2, padding=1), nn.ReLU()
        )
        self.actions = nn.Linear(32 * 16, actions)
        self.norm = nn.BatchNorm1d(actions)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = F.adaptive_avg_pool2d(self.features(x), 4).flatten(1)
        return torch.sigmoid(self.norm(self.actions(x)))


class BlockDrop(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.policy = Policy(len(WIDTHS) * PER_STAGE)
        self.seed = nn.Sequential(nn.Conv2d(3, WIDTHS[0], 3, padding=1, bias=False), nn.BatchNorm2d(WIDTHS[0]), nn.ReLU())
        self.layers = nn.ModuleList(nn.ModuleList(Block(width) for _ in range(PER_STAGE)) for width in WIDTHS)
        self.shrink = nn.ModuleList(nn.Conv2d(a, b, 1, stride=2, bias=False) for a, b in pairwise(WIDTHS))
        self.linear = nn.Linear(WIDTHS[-1], 10)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        policy = (self.policy(x) > 0.5).long()
        x = self.seed(x)
        t = 0
        for stage, blocks in enumerate(self.layers):
            for block in blocks:
                action = policy[:, t].view(-1, 1, 1, 1)
                if action.sum() == len(x):
                    x = F.relu(x + block(x))
                elif action.sum() > 0:  # some pictures of the batch
                    x = torch.where(action == 1, F.relu(x + block(x)), x)
                t += 1
            if stage < len(self.shrink):
                x = self.shrink[stage](x)
        return self.linear(x.mean((2, 3))), policy


def pictures(i: int) -> torch.Tensor:
    """Two similar pictures."""
    g = generator(i)
    scene = F.interpolate(torch.randn(1, 3, 5, 5, generator=g), size=32, mode="bilinear")
    return scene * (0.5 + torch.rand(1, generator=g)) + 0.3 * torch.randn(2, 3, 32, 32, generator=g)


def program() -> Program:
    model = BlockDrop()
    with torch.no_grad():
        data = torch.cat([pictures(-1 - i) for i in range(32)])
        update_bn([data], model.policy)
    model.eval()

    @torch.no_grad()
    def classify(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return model(x)

    return Program(model, classify, pictures)
