"""Random orders and samples: more than one number of a random stream."""

import random

import torch
from torch import nn


class Shuffled(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(4, 4) for _ in range(3)])

    def forward(self, x):
        order = [0, 1, 2]
        random.shuffle(order)  # expect: MP201 `random.shuffle(order)`
        for i in order:
            x = self.layers[i](x)
        return x


torch.manual_seed(0)
net = Shuffled()
for _ in range(5):
    net(torch.randn(2, 4))
