"""A layer that prints an object with a ``__repr__`` of its own: replay can't print the same text again."""

import torch
from torch import nn


class Config:
    def __init__(self) -> None:
        self.width = 4

    def __repr__(self) -> str:
        return f"Config(width={self.width})"


class Verbose(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)
        self.config = Config()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        print("config:", self.config)  # expect: MP114 `print("config:", self.config)`
        return self.layer(x)


model = Verbose()
for _ in range(3):
    model(torch.randn(2, 4))
