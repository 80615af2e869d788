"""A dict that gets another key at each call."""

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, batch):
        total = sum(batch.values())  # expect: MP201 `batch.values()`
        return self.layer(total)


torch.manual_seed(0)
net = Net()
for i in range(4):
    net({f"view{i}": torch.randn(2, 4), "x": torch.randn(2, 4)})
