"""Modules of a library in the user's model."""

import torch
from tinyvision import Block
from torch import nn


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.blocks = nn.Sequential(Block(4), Block(4))

    def forward(self, x):
        return self.blocks(x).mean()


torch.manual_seed(0)
net = Net()
for _ in range(3):
    net(torch.randn(2, 4)).backward()
