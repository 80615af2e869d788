"""An attribute put on a tensor that came from outside."""

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x):
        x.scaled = True  # expect: MP110 `x.scaled`
        return self.layer(x)


torch.manual_seed(0)
Net()(torch.randn(2, 4))
