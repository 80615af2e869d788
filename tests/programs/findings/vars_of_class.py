"""A class's dict taken as a whole, and a function's globals."""

import torch
from torch import nn


class Options:
    gain = 2.0


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x):
        gain = vars(Options)["gain"]  # expect: MP111 `vars(Options)`
        return self.layer(x) * gain * len(globals())  # expect: MP103 `globals()`


torch.manual_seed(0)
Net()(torch.randn(2, 4))
