"""Settings read from the environment each time."""

import os

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x):
        y = self.layer(x)
        if os.environ.get("FAST_MODE") == "1":
            y = y * 2
        folder = os.getcwd()  # expect: MP103 `os.getcwd()`
        return y * len(folder)


torch.manual_seed(0)
Net()(torch.randn(2, 4))
