"""A mode that changes at each call: each value is a capture."""

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)
        self.mode = "a"

    def forward(self, x):
        if self.mode.startswith("z"):  # expect: MP201 `self.mode`
            return x
        return self.layer(x)


torch.manual_seed(0)
net = Net()
for mode in ("a", "b", "c", "d"):
    net.mode = mode
    net(torch.randn(2, 4))
