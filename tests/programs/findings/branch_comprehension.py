"""A filter on tensor values inside a list comprehension."""

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(4, 4) for _ in range(3)])

    def forward(self, x):
        outs = [layer(x) for layer in self.layers]
        kept = [out for out in outs if out.mean() > -1]  # expect: MP101 `out.mean() > -1`
        return torch.stack(kept).sum(0)


torch.manual_seed(0)
Net()(torch.randn(2, 4))
