"""An equilibrium layer: it iterates until its state no longer moves."""

import torch
from torch import nn


class Equilibrium(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x):
        z = torch.zeros_like(x)
        gap = torch.ones(())
        while gap > 0.5:  # expect: MP101 `gap > 0.5`
            new = torch.tanh(self.layer(z) * 0.1 + x)
            gap = (new - z).norm()
            z = new
        return z


torch.manual_seed(0)
Equilibrium()(torch.randn(2, 4))
