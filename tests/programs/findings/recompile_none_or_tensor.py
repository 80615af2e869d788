"""An optional argument that is sometimes there: two captures, and no more after that."""

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x, mask=None):  # expect: MP201 `def forward`
        y = self.layer(x)
        if mask is not None:
            y = y * mask
        return y


torch.manual_seed(0)
net = Net()
for i in range(4):
    net(torch.randn(2, 4), mask=torch.ones(2, 4) if i % 2 else None)
