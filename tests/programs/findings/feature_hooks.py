"""Backward hooks can't be recorded; forward hooks can."""

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)
        self.head = nn.Linear(4, 1)

    def forward(self, x):
        h = self.layer(x)
        h.register_hook(lambda grad: grad * 2)  # expect: MP118 `h.register_hook(lambda grad: grad * 2)`
        return self.head(h)  # expect: MP118 `self.head(h)`


torch.manual_seed(0)
net = Net()
net.layer.register_forward_hook(lambda module, args, out: out + 1)
net.head.register_full_backward_hook(lambda module, gin, gout: None)
net(torch.randn(2, 4)).sum().backward()
