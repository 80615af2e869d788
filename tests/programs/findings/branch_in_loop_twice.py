"""A branch in a loop: one line, one finding, however often it is passed."""

import torch
from torch import nn


class Clip(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(4, 4) for _ in range(4)])

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
            if x.abs().max() > 100:  # expect: MP101 `x.abs().max() > 100`
                x = x.clamp(-100, 100)
        return x


torch.manual_seed(0)
Clip()(torch.randn(2, 4))
