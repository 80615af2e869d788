"""An operator of the user's own class reads a tensor's value."""

import torch
from torch import nn


class Score:
    def __init__(self, value):
        self.value = value

    def __lt__(self, other):
        return bool(self.value < other.value)  # expect: MP101 `bool(self.value < other.value)`


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.heads = nn.ModuleList([nn.Linear(4, 1) for _ in range(2)])

    def forward(self, x):
        a, b = (Score(head(x).mean()) for head in self.heads)
        return a.value if a < b else b.value


torch.manual_seed(0)
Net()(torch.randn(2, 4))
