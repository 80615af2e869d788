"""A cache keyed by the identity of an object that the region makes."""

import torch
from torch import nn


class Trace:
    def __init__(self, value):
        self.value = value


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x):
        trace = Trace(self.layer(x))
        label = f"trace {id(trace)}"  # expect: MP103 `id(trace)`
        return trace.value * len(label)


torch.manual_seed(0)
Net()(torch.randn(2, 4))
