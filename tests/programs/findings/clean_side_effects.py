"""State kept on the module: counters, caches, histories. All of it is replayed."""

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)
        self.register_buffer("average", torch.zeros(4))
        self.history, self.cache, self.calls = [], {}, 0

    def forward(self, x):
        y = self.layer(x)
        self.calls += 1  # expect: MP301 `self.calls`
        self.average.mul_(0.9).add_(y.detach().mean(0), alpha=0.1)  # expect: MP306 `self.average.mul_(0.9)`
        self.history.append(y.detach())  # expect: MP302 `self.history.append(y.detach())`
        self.cache["last"] = y.detach()  # expect: MP302 `self.cache["last"]`
        return y


torch.manual_seed(0)
net = Net()
for _ in range(4):
    net(torch.randn(2, 4))
