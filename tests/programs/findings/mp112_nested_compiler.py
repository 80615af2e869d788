"""One block of the model has been compiled by torch.compile already."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.block = torch.jit.trace(nn.Linear(4, 4), torch.randn(2, 4))
        self.head = nn.Linear(4, 1)

    def forward(self, x):
        return self.head(self.block(x)).mean()  # expect: MP112 `self.block(x)`


torch.manual_seed(0)
Model()(torch.randn(2, 4))
