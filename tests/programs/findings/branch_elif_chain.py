"""Three ways to go, chosen by a number read once."""

import torch
from torch import nn


class Router(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.experts = nn.ModuleList([nn.Linear(4, 4) for _ in range(3)])

    def forward(self, x):
        level = x.abs().mean()
        if level > 10:  # expect: MP101 `level > 10`
            return self.experts[0](x)
        elif level > 5:  # expect: MP101 `level > 5`
            return self.experts[1](x)
        else:
            return self.experts[2](x)


torch.manual_seed(0)
Router()(torch.randn(2, 4))
