"""Suppressed where the line says so (run as a user runs it: the comment is the server's affair)."""

# run: cli
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x):
        y = self.layer(x)
        if y.max() > 100:  # magpy: ignore[MP101]
            y = y / 100
        "ü"; z = y if y.min() > -100 else -y  # expect: MP101 `y.min() > -100`
        return z


torch.manual_seed(0)
net = Net()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(3):
    optimizer.zero_grad()
    net(torch.randn(2, 4)).sum().backward()
    optimizer.step()
