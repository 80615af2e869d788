"""An exception that leaves the region, from a helper."""

import torch
from torch import nn


def check(x, width):
    if x.shape[-1] != width:
        raise ValueError(f"expected {width} features, got {x.shape[-1]}")  # expect: MP307 `raise ValueError(f"expected {width} features, got {x.shape[-1]}")`


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x):
        check(x, 4)
        return self.layer(x)


torch.manual_seed(0)
try:
    Net()(torch.randn(2, 5))
except ValueError:
    pass
