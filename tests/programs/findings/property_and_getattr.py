"""Findings in a property and in __getattr__: they are where the code is."""

import time

import torch
from torch import nn


class Clock:
    @property
    def now(self):
        return time.time()  # expect: MP103 `time.time()`

    def __getattr__(self, name):
        return time.monotonic()  # expect: MP103 `time.monotonic()`


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)
        self.clock = Clock()

    def forward(self, x):
        return self.layer(x) * min(self.clock.now, 1.0) * min(self.clock.later, 1.0)


torch.manual_seed(0)
Net()(torch.randn(2, 4))
