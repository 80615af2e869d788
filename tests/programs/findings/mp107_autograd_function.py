"""Gradient scaling by a custom autograd.Function that reads a global."""

# backend: inductor
import torch
from torch import nn

SCALE = {"value": 0.5}


class ScaleGradient(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad):
        return grad * SCALE["value"]


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Linear(4, 4)
        self.head = nn.Linear(4, 1)

    def forward(self, x):
        return self.head(ScaleGradient.apply(self.body(x)))  # expect: MP107 `ScaleGradient.apply(self.body(x))`


torch.manual_seed(0)
net = Net()
net(torch.randn(2, 4)).sum().backward()
