"""Results that replay can't make again: a generator, an open iterator kept for later, an attribute of a class."""

import torch
from torch import nn


class Lazy(nn.Module):
    calls = 0

    def __init__(self) -> None:
        super().__init__()
        self.blocks = nn.ModuleList([nn.Linear(4, 4) for _ in range(2)])

    def forward(self, x):
        hidden = [block(x) for block in self.blocks]
        return (h.mean() for h in hidden)  # expect: MP110 `return (h.mean() for h in hidden)`


class Counting(Lazy):
    def forward(self, x):
        Counting.calls += 1  # expect: MP110 `Counting.calls`
        return self.blocks[0](x)


torch.manual_seed(0)
list(Lazy()(torch.randn(2, 4)))
Counting()(torch.randn(2, 4))
