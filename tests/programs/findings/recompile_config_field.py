"""A field of a config object that a sweep changes."""

from dataclasses import dataclass

import torch
from torch import nn


@dataclass
class Config:
    activation: str = "relu"


config = Config()
model = nn.Linear(4, 4)


def run(x):  # region
    return getattr(torch, config.activation)(model(x))  # expect: MP201 `config.activation`


torch.manual_seed(0)
for name in ("relu", "tanh", "sigmoid"):
    config.activation = name
    run(torch.randn(2, 4))
