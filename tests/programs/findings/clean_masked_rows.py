"""Boolean indexing and nonzero whose sizes stay in the graph."""

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x):
        picked = x[x[:, 0] > 0]
        where = x[:, 1].nonzero().squeeze(-1)
        return self.layer(picked).sum() + x[where].sum()


torch.manual_seed(0)
net = Net()
for _ in range(2):
    net(torch.randn(5, 4)).backward()
