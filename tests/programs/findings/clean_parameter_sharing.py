"""Tied weights, a parameter list and buffers by name."""

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(6, 4)
        self.head = nn.Linear(4, 6, bias=False)
        self.head.weight = self.embed.weight
        self.gains = nn.ParameterList([nn.Parameter(torch.ones(4)) for _ in range(2)])
        for i in range(2):
            self.register_buffer(f"shift_{i}", torch.full((4,), float(i)))

    def forward(self, ids):
        h = self.embed(ids)
        for i, gain in enumerate(self.gains):
            h = h * gain + getattr(self, f"shift_{i}")
        return self.head(h), sum(p.numel() for p in self.parameters())


torch.manual_seed(0)
net = Net()
for _ in range(2):
    net(torch.randint(6, (2, 3)))[0].sum().backward()
