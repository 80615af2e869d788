"""A context manager of the user's that reads the clock on both sides of a with block."""

import contextlib
import time

import torch
from torch import nn


@contextlib.contextmanager
def timing(into):
    start = time.perf_counter()
    yield
    into.append(time.perf_counter() - start)


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)
        self.times = []

    def forward(self, x):
        with timing(self.times):
            return self.layer(x)


torch.manual_seed(0)
Net()(torch.randn(2, 4))
