"""Exceptions as control flow inside a region, all caught."""

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)
        self.options = {"scale": 2.0}

    def forward(self, x):
        try:
            bias = self.options["bias"]
        except KeyError:
            bias = 0.0
        try:
            scale = self.missing
        except AttributeError:
            scale = getattr(self, "scale", None) or self.options.get("scale")
        finally:
            x = x + bias
        return self.layer(x) * scale


torch.manual_seed(0)
net = Net()
for _ in range(2):
    net(torch.randn(2, 4))
