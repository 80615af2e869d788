"""Two batch sizes: the second is captured with a dynamic dimension, and that is all."""

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x):  # expect: MP205 `def forward`
        return self.layer(x).relu()


torch.manual_seed(0)
net = Net()
for size in (8, 8, 3, 5, 7):
    net(torch.randn(size, 4))
