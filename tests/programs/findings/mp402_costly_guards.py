"""A weight computed from a long list of Python numbers at every call: each number is a check."""

# mode: compiled
import torch
from torch import nn


class Weighted(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weights = [i / 4000 for i in range(4000)]

    def forward(self, x):  # expect: MP402 `def forward`, MP401 `def forward`
        return x * sum(self.weights)


net = Weighted()
x = torch.randn(4)
for _ in range(30):
    net(x)
