"""A module list with torch.compile's decorator switched off, and torch.compiler.disable: ordinary code here."""

import torch
from torch import nn


@torch.compiler.disable
def normalise(x):
    return x / x.norm()


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x):
        return normalise(self.layer(x))


torch.manual_seed(0)
net = Net()
for _ in range(2):
    net(torch.randn(2, 4))
