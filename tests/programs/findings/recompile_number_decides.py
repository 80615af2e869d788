"""A step number that is compared: it can't be carried, as the branch needs it."""

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)
        self.step = 0

    def forward(self, x):
        self.step += 1
        repeats = [x] * self.step  # expect: MP201 `[x] * self.step`
        return self.layer(torch.stack(repeats).sum(0))


torch.manual_seed(0)
net = Net()
for _ in range(5):
    net(torch.randn(2, 4))
