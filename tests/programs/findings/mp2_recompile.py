"""A model with a mode switch, a step counter, and batches of more than one size."""

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)
        self.mode = "warmup"
        self.calls = 0

    def forward(self, x):  # expect: MP205 `def forward`
        self.calls += 1  # expect: MP301 `self.calls`
        h = self.layer(x) / self.calls
        if self.mode == "warmup":  # expect: MP201 `self.mode`, MP204 `self.mode`
            h = h * 0.1
        return h


torch.manual_seed(0)
net = Net()
for step in range(6):
    if step == 3:
        net.mode = "train"
    net(torch.randn(2 if step < 5 else 3, 4))
