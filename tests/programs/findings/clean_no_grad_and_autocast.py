"""Grad modes and autocast inside a region."""

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.teacher, self.student = nn.Linear(4, 4), nn.Linear(4, 4)

    def forward(self, x):
        with torch.no_grad():
            target = self.teacher(x).detach()
        with torch.autocast("cpu", dtype=torch.bfloat16):
            out = self.student(x)
        with torch.enable_grad():
            return (out.float() - target).square().mean()


torch.manual_seed(0)
net = Net()
for _ in range(2):
    net(torch.randn(2, 4)).backward()
