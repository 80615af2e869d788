"""A bound on both sides, written as one chained comparison."""

import torch
from torch import nn


class Bounded(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x):
        y = self.layer(x)
        if -5.0 < y.mean() < 5.0:  # expect: MP101 `-5.0 < y.mean() < 5.0`
            return y
        return y * 0


torch.manual_seed(0)
Bounded()(torch.randn(2, 4))
