"""A condition kept in a lambda: the finding is in the lambda."""

import torch
from torch import nn

too_large = lambda t: t.norm() > 100 and t.numel() > 1  # expect: MP101 `t.norm() > 100`


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x):
        y = self.layer(x)
        return y * 0.1 if too_large(y) else y  # expect: MP101 `too_large(y)`


torch.manual_seed(0)
Net()(torch.randn(2, 4))
