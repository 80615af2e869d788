"""Assertions on tensors: they are checked after the graph has run, and are no warning."""

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x):
        assert x.dim() == 2, f"expected a batch, got {x.dim()} dimensions"
        assert torch.isfinite(x).all(), "not finite"
        return self.layer(x)


torch.manual_seed(0)
Net()(torch.randn(2, 4))
