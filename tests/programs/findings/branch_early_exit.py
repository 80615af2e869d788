"""An early-exit classifier: it stops at the first head that is sure."""

import torch
from torch import nn


class EarlyExit(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.blocks = nn.ModuleList([nn.Linear(8, 8) for _ in range(3)])
        self.heads = nn.ModuleList([nn.Linear(8, 3) for _ in range(3)])

    def forward(self, x):
        for block, head in zip(self.blocks, self.heads):
            x = block(x).relu()
            scores = head(x).softmax(-1)
            if scores.max(-1).values.min() > 0.9:  # expect: MP101 `scores.max(-1).values.min() > 0.9`
                return scores
        return scores


torch.manual_seed(0)
model = EarlyExit()
with torch.no_grad():
    for _ in range(2):
        model(torch.randn(2, 8))
