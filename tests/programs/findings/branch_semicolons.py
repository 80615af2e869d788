"""Several statements in a line, and the same call twice in one expression."""

import time

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x):
        y = self.layer(x); a = time.time() + time.time()  # expect: MP103 `time.time()`
        return y * a


torch.manual_seed(0)
Net()(torch.randn(2, 4))
