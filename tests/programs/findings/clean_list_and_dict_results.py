"""Nested results: lists, dicts, tuples with shared tensors, Nones and numbers."""

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(4, 4) for _ in range(2)])

    def forward(self, batch):
        hidden = [batch["x"]]
        for layer in self.layers:
            hidden.append(layer(hidden[-1]))
        return {"last": hidden[-1], "all": tuple(hidden), "size": len(hidden), "loss": None, "ids": [*batch["ids"]]}


torch.manual_seed(0)
net = Net()
for _ in range(2):
    net({"x": torch.randn(2, 4), "ids": ["a", "b"]})
