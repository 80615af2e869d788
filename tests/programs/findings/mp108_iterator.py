"""A step that takes its batches itself, from a generator made outside of it."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 1)


def batches():
    while True:
        yield torch.randn(3, 4)


source = batches()


def step():  # region
    x = next(source)  # expect: MP108 `next(source)`
    return model(x).mean()


for _ in range(2):
    step()
