"""Branches and loops on Python data: configuration, shapes, types and None."""

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self, depth: int = 3, residual: bool = True, norm: str = "layer") -> None:
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(4, 4) for _ in range(depth)])
        self.residual = residual
        self.norm = nn.LayerNorm(4) if norm == "layer" else None

    def forward(self, x, mask=None, scale=None):
        if x.dim() == 2 and x.shape[-1] == 4 and not torch.is_complex(x):
            for i, layer in enumerate(self.layers):
                y = layer(x)
                if self.residual and i > 0:
                    y = y + x
                x = y.relu() if i < len(self.layers) - 1 else y
        if self.norm is not None:
            x = self.norm(x)
        if mask is not None:
            x = x.masked_fill(mask, 0.0)
        return x * (scale or 1.0)


torch.manual_seed(0)
net = Net()
for _ in range(2):
    net(torch.randn(3, 4), mask=torch.zeros(3, 4, dtype=torch.bool))
