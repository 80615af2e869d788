"""In-place operations and views on the region's own tensors."""

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x):
        y = self.layer(x).clone()
        y[:, 0] = 0
        y[1:] += 1
        y.add_(1).mul_(2)
        out = torch.zeros(2, 8)
        out[:, :4] = y
        out.view(4, 4)[0].fill_(1)
        return out.t().contiguous()


torch.manual_seed(0)
net = Net()
for _ in range(2):
    net(torch.randn(2, 4)).sum().backward()
