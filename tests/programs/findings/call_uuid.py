"""A run id made in forward."""

import uuid

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x):
        self.run = str(uuid.uuid4())  # expect: MP103 `uuid.uuid4()`
        return self.layer(x)


torch.manual_seed(0)
Net()(torch.randn(2, 4))
