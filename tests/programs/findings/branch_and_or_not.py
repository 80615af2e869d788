"""Conditions with and, or, not and a conditional expression, all on tensors."""

import torch
from torch import nn


class Gate(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x, mask):
        y = self.layer(x)
        if mask.any() and y.sum() > 0:  # expect: MP101 `mask.any()`, MP101 `y.sum() > 0`
            y = y + 1
        if not mask.all():  # expect: MP101 `mask.all()`
            y = y * 2
        return y if y.mean() > 0 else -y  # expect: MP101 `y.mean() > 0`


torch.manual_seed(1)
Gate()(torch.ones(2, 4), torch.tensor([True, False]))
