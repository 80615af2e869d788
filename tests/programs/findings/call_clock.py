"""Clocks of all kinds."""

import time
from datetime import datetime

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)
        self.times = []

    def forward(self, x):
        start = time.time()
        y = self.layer(x)
        self.times.append(time.time() - start)
        self.when = datetime.now()  # expect: MP103 `datetime.now()`
        return y


torch.manual_seed(0)
Net()(torch.randn(2, 4))
