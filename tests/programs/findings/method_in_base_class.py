"""The finding is in a base class in the same file; the subclass only calls it."""

import torch
from torch import nn


class Base(nn.Module):
    def check(self, x):
        if x.std() < 1e-6:  # expect: MP101 `x.std() < 1e-6`
            return x + 1
        return x


class Net(Base):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x):
        return super().check(self.layer(x))


torch.manual_seed(0)
Net()(torch.randn(2, 4))
