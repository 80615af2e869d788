"""A condition that runs over several lines, inside parentheses and with a backslash."""

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x):
        y = self.layer(x)
        if (
            y.abs()  # expect: MP101 `y.abs()` to `> 30`+3
            .mean(dim=-1)
            .max()
            > 30
        ):
            y = y / 30
        if y.sum() \
                > 1000:
            # expect[-2]: MP101 `y.sum() ` to `> 1000`+1
            y = y / 1000
        return y


torch.manual_seed(0)
Net()(torch.randn(2, 4))
