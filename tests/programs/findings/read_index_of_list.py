"""A tensor used as the index of a Python list."""

import torch
from torch import nn

SCALES = [0.5, 1.0, 2.0]


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 3)

    def forward(self, x):
        y = self.layer(x)
        return y * SCALES[y.sum(0).argmax()]  # expect: MP102 `SCALES[y.sum(0).argmax()]`


torch.manual_seed(0)
Net()(torch.randn(2, 4))
