"""A function decorated with magpy_core.compile is a region as it is."""

import torch

import magpy_core

model = torch.nn.Linear(4, 4)


@magpy_core.compile(backend="eager")
def step(x):
    y = model(x)
    if y.sum() > 100:  # expect: MP101 `y.sum() > 100`
        y = y * 0
    return y


torch.manual_seed(0)
for _ in range(2):
    step(torch.randn(2, 4))
