"""Several statements in a line, and the same call twice in one expression."""

import random

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x):
        y = self.layer(x); a = random.random() + random.random()  # expect: MP103 `random.random()`, MP103 `random.random()`#2
        return y * a


torch.manual_seed(0)
Net()(torch.randn(2, 4))
