"""Python's random numbers: which function, with which arguments, over one line or two."""

import random

import torch
from torch import nn

GENERATOR = random.Random(3)


class Augment(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x):
        if random.random() < 0.5:  # expect: MP103 `random.random()`
            x = x.flip(-1)
        scale = random.uniform(  # expect: MP103 `random.uniform(` to `)`+3
            0.9,
            1.1,
        )
        x = x * random.choice([1.0, 2.0])  # expect: MP103 `random.choice([1.0, 2.0])`
        return self.layer(x) * scale + GENERATOR.gauss(0, 1)  # expect: MP103 `GENERATOR.gauss(0, 1)`


torch.manual_seed(0)
Augment()(torch.randn(2, 4))
