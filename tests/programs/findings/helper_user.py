"""The check is in the project's own helper file: the finding is there, not at the call."""

# files: helpers/checks.py
import torch
from helpers.checks import is_large, scaled
from torch import nn


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x):
        y = self.layer(x)
        return y if is_large(y) else scaled(y)


torch.manual_seed(0)
Net()(torch.randn(2, 4))
