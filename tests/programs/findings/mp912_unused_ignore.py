"""Suppressed findings: one that is there, and one that no longer is."""

# run: cli
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 1)

    def forward(self, x):
        h = self.layer(x)
        if h.mean() > 100:  # magpy: ignore[MP101]
            h = h / 100
        return h.mean()  # magpy: ignore[MP102]  # expect: MP912 `MP102`


torch.manual_seed(0)
net = Net()
optimizer = torch.optim.AdamW(net.parameters(), lr=0.01)
for _ in range(3):
    optimizer.zero_grad()
    net(torch.randn(2, 4)).backward()
    optimizer.step()
