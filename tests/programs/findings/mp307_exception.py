"""A model that refuses sequences that are too long; the caller catches it."""

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(6, 6)

    def forward(self, x):
        if x.shape[1] > 5:
            raise ValueError(f"sequence too long: {x.shape[1]}")  # expect: MP307 `raise ValueError(f"sequence too long: {x.shape[1]}")`
        return self.layer(x)


torch.manual_seed(0)
try:
    Net()(torch.randn(2, 6))
except ValueError as error:
    assert "too long" in str(error)
