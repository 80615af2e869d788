"""Python's random numbers: a replay draws them again from the same stream."""

import random

import torch
from torch import nn

GENERATOR = random.Random(3)


class Augment(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x):
        if random.random() < 0.5:
            x = x.flip(-1)
        scale = random.uniform(
            0.9,
            1.1,
        )
        x = x * random.choice([1.0, 2.0])
        return self.layer(x) * scale + GENERATOR.gauss(0, 1)


torch.manual_seed(0)
Augment()(torch.randn(2, 4))
