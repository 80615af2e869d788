"""Weights in a NumPy array, used one by one, and a constructor that torch's Python API does not see."""

import numpy as np
import torch
from torch import nn


class Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)
        self.weights = np.array([1.0, 0.5])

    def forward(self, x):
        for weight in self.weights:  # expect: MP105 `self.weights`
            x = x * weight
        scale = torch.FloatTensor([x.mean(), 1.0, 1.0, 1.0])  # expect: MP105 `torch.FloatTensor([x.mean(), 1.0, 1.0, 1.0])`
        # expect[-1]: MP102 `torch.FloatTensor([x.mean(), 1.0, 1.0, 1.0])`
        return self.layer(x) + scale


torch.manual_seed(0)
Attention()(torch.randn(4, 4))
