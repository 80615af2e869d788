"""Is this tensor one of those? `in` compares tensors, and asks each result for its truth."""

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)
        self.stops = [7, 8]

    def forward(self, x, token):
        y = self.layer(x)
        if token in self.stops:  # expect: MP101 `token in self.stops`
            y = y * 0
        return y


torch.manual_seed(0)
Net()(torch.randn(2, 4), torch.tensor(3))
