"""Small programs of which it is known what TorchDynamo makes of them; the tests find lines by their comments."""

from __future__ import annotations

import torch
from torch import nn


class Broken(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)
        self.scale = 1

    def noisy(self, x: torch.Tensor) -> torch.Tensor:
        y = x * 2
        print("ü", end=""); return y + x.sum().item()  # print, item  # fmt: skip  # noqa: E702

    def forward(self, x: torch.Tensor) -> torch.Tensor:  # definition
        x = self.layer(x)
        if x.sum() > 0:  # branch
            x = x + 1
        return self.noisy(x) * self.scale  # scale


def loop(x: torch.Tensor) -> torch.Tensor:  # loop
    for _ in range(2):
        x = x + 1
        print("", end="")  # loop break
    return x


def guarded(x: torch.Tensor) -> torch.Tensor:  # try
    try:
        x = x + 1
        print("", end="")  # try break
        return x * 2
    finally:
        x = x + 3


def lengths(x: torch.Tensor, text: str) -> torch.Tensor:  # limit
    return x * len(text)  # length


def plain(x: torch.Tensor) -> torch.Tensor:  # plain
    return x * 2 + 1
