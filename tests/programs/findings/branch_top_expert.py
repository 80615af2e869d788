"""A mixture of experts that asks Python for the expert's number."""

import torch
from torch import nn


class Switch(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.gate = nn.Linear(4, 3)
        self.experts = nn.ModuleList([nn.Linear(4, 4) for _ in range(3)])

    def forward(self, x):
        best = self.gate(x).mean(0).argmax().item()
        return self.experts[best](x)  # expect: MP102 `self.experts[best]`


torch.manual_seed(0)
Switch()(torch.randn(5, 4))
