"""A layer that skips its work when nothing has changed, asked with torch.equal and torch.allclose."""

import torch
from torch import nn


class Cached(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)
        self.register_buffer("last", torch.zeros(2, 4))

    def forward(self, x):
        if torch.equal(x, self.last):  # expect: MP101 `torch.equal(x, self.last)`
            return self.last
        if torch.allclose(x, self.last, atol=1e-3):  # expect: MP101 `torch.allclose(x, self.last, atol=1e-3)`
            return self.last
        return self.layer(x)


torch.manual_seed(0)
Cached()(torch.randn(2, 4))
