"""Letters of two, three and four bytes before the place: columns count characters, not bytes."""

import time

import torch
from torch import nn


class Größe(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.schicht = nn.Linear(4, 4)

    def forward(self, x):
        maß = self.schicht(x)
        α, näher, 名前 = 1, "äöü€𝔘🙂", maß.max() > 9; x = α * x if 名前 else maß  # expect: MP101 `名前`#2
        text = {"🙂🙂": "é"}; chance = time.time()  # expect: MP103 `time.time()`
        return x * len(text) * chance


torch.manual_seed(0)
Größe()(torch.randn(2, 4))
