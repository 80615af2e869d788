"""Activation checkpointing and weight norm from torch.utils."""

import torch
from torch import nn
from torch.nn.utils.parametrizations import weight_norm


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.a = weight_norm(nn.Linear(4, 4))
        self.b = nn.Linear(4, 4)

    def forward(self, x):
        return self.b(self.a(x).relu())


torch.manual_seed(0)
net = Net()
for _ in range(2):
    net(torch.randn(2, 4)).sum().backward()
