"""A configuration in a dataclass, a named tuple, an enum and a simple namespace."""

import enum
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import NamedTuple

import torch
from torch import nn


class Mode(enum.Enum):
    FAST = "fast"
    EXACT = "exact"


class Sizes(NamedTuple):
    width: int
    depth: int


@dataclass
class Config:
    sizes: Sizes = Sizes(4, 2)
    mode: Mode = Mode.EXACT
    scales: list[float] = field(default_factory=lambda: [1.0, 0.5])


@dataclass
class Output:
    hidden: torch.Tensor
    norm: torch.Tensor


class Net(nn.Module):
    def __init__(self, config: Config, extra: SimpleNamespace) -> None:
        super().__init__()
        self.config, self.extra = config, extra
        self.layers = nn.ModuleList([nn.Linear(config.sizes.width, config.sizes.width) for _ in range(config.sizes.depth)])

    def forward(self, x):
        for layer, scale in zip(self.layers, self.config.scales, strict=True):
            x = layer(x) * scale
        if self.config.mode is Mode.EXACT and self.extra.debug is False:
            x = x - x.mean(-1, keepdim=True)
        return Output(hidden=x, norm=x.norm())


torch.manual_seed(0)
net = Net(Config(), SimpleNamespace(debug=False))
for _ in range(2):
    net(torch.randn(2, 4)).norm.backward()
