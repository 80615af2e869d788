"""Settings kept in a class and read through vars(): no guard can watch a class's dict as a whole."""

import torch
from torch import nn


class Settings:
    scale = 2.0


class Scaled(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x):
        settings = vars(Settings)  # expect: MP111 `vars(Settings)`
        return self.layer(x) * settings["scale"]


torch.manual_seed(0)
Scaled()(torch.randn(2, 4))
