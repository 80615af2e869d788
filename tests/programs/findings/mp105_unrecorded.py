"""A mask built with NumPy that selects rows, and a constructor that torch's Python API does not see."""

import numpy as np
import torch
from torch import nn


class Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)
        self.keep = np.array([True, True, False, True])

    def forward(self, x):
        kept = x[self.keep]  # expect: MP105 `x[self.keep]`
        scale = torch.FloatTensor([x.mean(), 1.0, 1.0, 1.0])  # expect: MP105 `torch.FloatTensor([x.mean(), 1.0, 1.0, 1.0])`
        # expect[-1]: MP102 `torch.FloatTensor([x.mean(), 1.0, 1.0, 1.0])`
        return self.layer(kept) + scale


torch.manual_seed(0)
Attention()(torch.randn(4, 4))
