"""The loss scale of a model follows the number it read with .item()."""

import torch
from torch import nn


class Scaled(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x):
        y = self.layer(x)
        peak = y.abs().max().item()
        if peak > 100:  # expect: MP101 `peak > 100`
            y = y / peak
        return y


torch.manual_seed(0)
Scaled()(torch.randn(2, 4))
