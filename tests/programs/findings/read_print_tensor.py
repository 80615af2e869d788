"""Tensors printed while debugging: whole, as a number, and in an f-string."""

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x):
        y = self.layer(x)
        print(y)  # expect: MP102 `print(y)`
        print("mean", y.mean().item())
        print(f"largest {y.max():.3f}")
        return y


torch.manual_seed(0)
Net()(torch.randn(2, 4))
