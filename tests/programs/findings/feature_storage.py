"""A tensor's storage pointed elsewhere and resized."""

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)
        self.register_buffer("work", torch.zeros(0))

    def forward(self, x):
        self.work.resize_(x.shape)  # expect: MP106 `self.work.resize_(x.shape)`
        return self.layer(x)


torch.manual_seed(0)
Net()(torch.randn(2, 4))
