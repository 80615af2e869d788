"""NumPy's random numbers: one number is drawn again by a replay, an array of them is not."""

import numpy as np
import torch
from torch import nn

RNG = np.random.default_rng(0)


class Mixup(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x):
        weight = np.random.beta(0.2, 0.2)
        order = RNG.permutation(x.shape[0])
        return self.layer(x) * weight + len(order)


torch.manual_seed(0)
Mixup()(torch.randn(2, 4))
