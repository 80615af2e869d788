"""Decisions on tensors without Python: torch.where, masks, clamp."""

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x):
        y = self.layer(x)
        y = torch.where(y.abs().max() > 10, y / 10, y)
        y = y * (y.mean(-1, keepdim=True) > 0).to(y.dtype)
        return y.clamp(min=-1, max=1).masked_fill(torch.isnan(y), 0.0)


torch.manual_seed(0)
for _ in range(2):
    Net()(torch.randn(2, 4))
