"""A scripted function in the middle of a model."""

import torch
from torch import nn


@torch.jit.script
def gelu(x: torch.Tensor) -> torch.Tensor:
    return x * 0.5 * (1.0 + torch.erf(x / 1.41421))


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x):
        return gelu(self.layer(x))  # expect: MP112 `gelu(self.layer(x))`


torch.manual_seed(0)
Net()(torch.randn(2, 4))
