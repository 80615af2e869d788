"""Stochastic depth with Python's random numbers (drawn again by a replay), timed with a clock (which is not)."""

import random
import time

import torch
from torch import nn


class Stack(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.blocks = nn.ModuleList([nn.Linear(4, 4) for _ in range(3)])
        self.seconds = 0.0

    def forward(self, x):
        start = time.perf_counter()
        for block in self.blocks:
            if random.random() < 0.2:
                continue
            x = block(x).relu()
            self.seconds += time.perf_counter() - start  # expect: MP103 `time.perf_counter()`
        return x


torch.manual_seed(0)
random.seed(0)
model = Stack()
for _ in range(2):
    model(torch.randn(2, 4))
