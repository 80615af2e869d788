"""A batch cut to its longest sequence: a slice with a number from a tensor."""

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x, mask):
        longest = mask.sum(1).max().item()
        return self.layer(x[:, :longest])


torch.manual_seed(0)
Net()(torch.randn(2, 5, 4), torch.ones(2, 5, dtype=torch.long))
