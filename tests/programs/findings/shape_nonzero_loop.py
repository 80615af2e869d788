"""A Python loop over the rows that a condition picks."""

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x):
        rows = x.sum(-1).nonzero()
        total = x.new_zeros(4)
        for row in rows:  # expect: MP109 `rows`
            total = total + self.layer(x[row[0]])
        return total


torch.manual_seed(0)
Net()(torch.randn(3, 4))
