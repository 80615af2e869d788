"""Printing, logging and warning in forward: put out again at each replay."""

import logging
import warnings

import torch
from torch import nn

log = logging.getLogger(__name__)


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x):
        print("input", tuple(x.shape), x.dtype)  # expect: MP305 `print("input", tuple(x.shape), x.dtype)`
        log.info("a batch of %d", x.shape[0])
        warnings.warn("this model is only a test", stacklevel=2)
        y = self.layer(x)
        print(f"mean of {y.shape[-1]} features:", y.mean().item())  # expect: MP305 `print(f"mean of {y.shape[-1]} features:", y.mean().item())`
        return y


torch.manual_seed(0)
net = Net()
for _ in range(2):
    net(torch.randn(2, 4))
