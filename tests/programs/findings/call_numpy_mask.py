"""A NumPy array kept on the module: its memory can't be watched."""

import numpy as np
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)
        self.weights = np.linspace(0.0, 1.0, 4)

    def forward(self, x):
        total = self.weights.sum()
        first = self.weights[0]
        return self.layer(x) * float(total) + float(first)


torch.manual_seed(0)
Net()(torch.randn(2, 4))
