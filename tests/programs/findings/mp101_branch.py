"""A classifier that rescales its features when they get too large, and a sanity check on its loss."""

import torch
from torch import nn


class Classifier(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.encoder = nn.Linear(8, 16)
        self.head = nn.Linear(16, 3)

    def forward(self, x, labels):
        h = self.encoder(x).relu()
        if h.abs().max() > 10.0:  # expect: MP101 `h.abs().max() > 10.0`
            h = h / 10.0
        loss = nn.functional.cross_entropy(self.head(h), labels)
        assert not torch.isnan(loss), "loss is not a number"  # expect: MP101 `torch.isnan(loss)`
        return loss


torch.manual_seed(0)
model = Classifier()
for _ in range(2):
    model(torch.randn(4, 8), torch.tensor([0, 1, 2, 0])).backward()
