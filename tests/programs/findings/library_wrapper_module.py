"""A library's module that times the user's: the region is the library's, its finding at the user's call."""

import torch
from tinyvision import Timed
from torch import nn

torch.manual_seed(0)
model = Timed(nn.Linear(4, 4))
for _ in range(2):
    model(torch.randn(2, 4))  # expect: MP103 `model(torch.randn(2, 4))`
