"""A statistic computed with NumPy in the middle of a model."""

import numpy as np
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x):
        y = self.layer(x)
        spread = np.std(y.detach().cpu().numpy())
        return y / (1.0 + float(spread))  # expect: MP102 `y / (1.0 + float(spread))`


torch.manual_seed(0)
Net()(torch.randn(2, 4))
