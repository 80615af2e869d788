"""A vocabulary looked up through NumPy's native code in the middle of a model."""

import numpy as np
import torch
from torch import nn

IDS = np.array([3, 1, 2, 0])


class Embedder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(4, 8)

    def forward(self, word: int):
        first = int(IDS[word])
        return self.table.weight[first]


torch.manual_seed(0)
embed = Embedder()
embed(2)
