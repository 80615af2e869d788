"""A layer that counts its calls under a lock, as servers with several threads do: replay can't hold the lock."""

import threading

import torch
from torch import nn


class Counting(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)
        self.lock = threading.Lock()
        self.calls = 0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        with self.lock:  # expect: MP115 `with self.lock:`
            self.calls += 1
        return self.layer(x)


model = Counting()
for _ in range(3):
    model(torch.randn(2, 4))
