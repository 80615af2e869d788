"""A library's module that times the user's: the region is the library's, and clocks around it are no finding."""

import torch
from tinyvision import Timed
from torch import nn

torch.manual_seed(0)
model = Timed(nn.Linear(4, 4))
for _ in range(2):
    model(torch.randn(2, 4))
