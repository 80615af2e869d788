"""An exception if the input is bad: the test is on tensor data."""

import torch
from torch import nn


class Embed(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(10, 4)

    def forward(self, ids):
        if (ids >= 10).any():
            raise IndexError("an id is not in the vocabulary")
        return self.table(ids)


torch.manual_seed(0)
Embed()(torch.tensor([1, 2, 3]))
