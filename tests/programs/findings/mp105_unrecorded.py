"""A mask built with NumPy and added to a tensor, and a constructor that torch's Python API does not see."""

import numpy as np
import torch
from torch import nn


class Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)
        self.mask = np.tril(np.ones((4, 4), dtype=np.float32))

    def forward(self, x):
        scale = torch.FloatTensor([x.mean(), 1.0, 1.0, 1.0])  # expect: MP105 `torch.FloatTensor([x.mean(), 1.0, 1.0, 1.0])`
        # expect[-1]: MP102 `torch.FloatTensor([x.mean(), 1.0, 1.0, 1.0])`
        return self.layer(x) + self.mask + scale  # expect: MP105 `self.layer(x) + self.mask`


torch.manual_seed(0)
Attention()(torch.randn(4, 4))
