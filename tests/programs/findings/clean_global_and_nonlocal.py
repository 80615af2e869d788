"""A global and a nonlocal variable that are written."""

import torch
from torch import nn

CALLS = 0
model = nn.Linear(4, 4)


def make():
    last = None

    def step(x):  # region
        global CALLS
        nonlocal last
        CALLS += 1  # expect: MP303 `CALLS`
        last = model(x).mean()  # expect: MP304 `last`
        return last * 2

    return step


torch.manual_seed(0)
step = make()
for _ in range(4):
    step(torch.randn(2, 4))
