"""The number of marked rows, read and tested in one expression."""

import torch
from torch import nn


class Pool(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x, mask):
        y = self.layer(x)
        if (count := mask.sum().item()) > 0:  # expect: MP101 `(count := mask.sum().item()) > 0`
            y = y.sum(0) / count
        return y


torch.manual_seed(0)
Pool()(torch.randn(3, 4), torch.tensor([True, False, True]))
