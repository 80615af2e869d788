"""Properties, class attributes, slots, static and class methods."""

import torch
from torch import nn


class Scale:
    __slots__ = ("value",)

    def __init__(self, value):
        self.value = value

    def __call__(self, x):
        return x * self.value


class Net(nn.Module):
    factor = 2.0

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)
        self.scale = Scale(3.0)

    @property
    def width(self):
        return self.layer.out_features

    @classmethod
    def doubled(cls, x):
        return x * cls.factor

    @staticmethod
    def shifted(x, by=1.0):
        return x + by

    def forward(self, x):
        return self.shifted(self.doubled(self.scale(self.layer(x)))) / self.width


torch.manual_seed(0)
net = Net()
for _ in range(2):
    net(torch.randn(2, 4))
