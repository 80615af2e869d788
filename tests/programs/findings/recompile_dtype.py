"""Another dtype is another graph: two of them, each captured once."""

import torch
from torch import nn


class Net(nn.Module):
    def forward(self, x):  # expect: MP201 `def forward`
        return (x * 2).sum()


net = Net()
for dtype in (torch.float32, torch.float64, torch.int64):
    net(torch.ones(2, 4).to(dtype))
