"""A compressor in the middle of a model: native code of the standard library that no table knows."""

import bz2

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x, name: str):
        y = self.layer(x)
        size = len(bz2.compress(name.encode()))  # expect: MP104 `bz2.compress(name.encode())`
        return y * size


torch.manual_seed(0)
Net()(torch.randn(2, 4), "name")
