"""A finding inside try, and one inside except."""

import time

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x):
        try:
            if x.norm() > 0:  # expect: MP101 `x.norm() > 0`
                raise KeyError("norm")
        except KeyError:
            x = x * time.time()  # expect: MP103 `time.time()`
        return self.layer(x)


torch.manual_seed(0)
Net()(torch.randn(2, 4))
