"""An exponential moving average of the weights, updated by a function of its own under no_grad."""

import copy

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 4)
ema = copy.deepcopy(model).requires_grad_(False)


@torch.no_grad()
def update(decay=0.99):  # region
    for slow, fast in zip(ema.parameters(), model.parameters(), strict=True):
        slow.lerp_(fast, 1 - decay)  # expect: MP306 `slow.lerp_(fast, 1 - decay)`


for _ in range(3):
    model(torch.randn(2, 4)).sum().backward()
    update()
