"""A model that looks at a tensor's address."""

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)
        self.last = 0

    def forward(self, x):
        y = self.layer(x)
        if y.data_ptr() == self.last:  # expect: MP102 `y.data_ptr()`
            return x
        return y


torch.manual_seed(0)
Net()(torch.randn(2, 4))
