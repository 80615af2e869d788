"""A decorator of the user's, with a finding in the decorator and one in what it wraps."""

import functools
import time

import torch
from torch import nn


def timed(function):
    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        start = time.monotonic()
        out = function(*args, **kwargs)
        wrapper.seconds = time.monotonic() - start
        return out

    return wrapper


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)

    @timed
    def forward(self, x):
        y = self.layer(x)
        if y.sum() > 1e9:  # expect: MP101 `y.sum() > 1e9`
            y = y * 0
        return y


torch.manual_seed(0)
Net()(torch.randn(2, 4))
