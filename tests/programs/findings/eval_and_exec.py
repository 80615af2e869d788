"""Code run from text."""

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x):
        scale = eval("1 + 1")  # expect: MP103 `eval("1 + 1")`
        return self.layer(x) * scale


torch.manual_seed(0)
Net()(torch.randn(2, 4))
