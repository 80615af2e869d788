"""A hash object and a compressor that live outside: their state is in C."""

import hashlib
import zlib

import torch
from torch import nn

digest = hashlib.sha256()
squeezer = zlib.compressobj()


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x, name: str):
        digest.update(name.encode())  # expect: MP104 `digest.update(name.encode())`
        size = len(squeezer.compress(name.encode()))  # expect: MP104 `squeezer.compress(name.encode())`
        return self.layer(x) * (1 + size)


torch.manual_seed(0)
Net()(torch.randn(2, 4), "name")
