"""A tag that is another string at each call: no capture is ever used again."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 1)


def step(x, tag):  # region  # expect: MP203 `def step`, MP201 `def step`
    if tag.startswith("even"):
        return model(x)
    return x.mean()


for i in range(10):
    step(torch.randn(2, 4), f"batch-{i}")
