"""A library reads the clock twice and branches on data: one finding each, at the user's calls."""

import torch
from tinyvision import jitter, safe_divide
from torch import nn


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x):
        x = jitter(x)  # expect: MP103 `jitter(x)`
        y = self.layer(x)
        return safe_divide(y, y.abs() + 1)  # expect: MP101 `safe_divide(y, y.abs() + 1)`


torch.manual_seed(0)
Net()(torch.randn(2, 4))
