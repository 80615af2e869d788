"""A step counter and a warmup factor: numbers that vary are carried, not guarded."""

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)
        self.steps = 0

    def forward(self, x, temperature: float):  # expect: MP202 `def forward`
        self.steps += 1  # expect: MP301 `self.steps`
        return self.layer(x) / temperature * (1.0 / self.steps)


torch.manual_seed(0)
net = Net()
for step in range(5):
    net(torch.randn(2, 4), 1.0 + step)
