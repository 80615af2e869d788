"""A mean over the rows a mask picks: the number of rows is data."""

# backend: inductor
import torch
from torch import nn


class Pool(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x, mask):
        picked = self.layer(x)[mask]
        return picked.sum(0) / picked.shape[0]  # expect: MP109 `picked.shape`


torch.manual_seed(0)
Pool()(torch.randn(5, 4), torch.tensor([True, False, True, True, False]))
