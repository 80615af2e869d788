"""A module called inside another is part of the outer region: its finding names its own line, once."""

import torch
from torch import nn


class Inner(nn.Module):
    def forward(self, x):
        return x / x.max() if x.max() > 1 else x  # expect: MP101 `x.max() > 1`


class Outer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = Inner(), Inner()

    def forward(self, x):
        return self.second(self.first(x))


torch.manual_seed(0)
Outer()(torch.randn(2, 4))
