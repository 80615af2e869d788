"""The same helper in two models: each model is a region, and the finding is at one line for both."""

import torch
from torch import nn


def gate(x):
    if x.mean() > 0:  # expect: MP101 `x.mean() > 0`
        return x
    return -x


class A(nn.Module):
    def forward(self, x):
        return gate(x) * 2


class B(nn.Module):
    def forward(self, x):
        return gate(x) + 1


torch.manual_seed(0)
x = torch.randn(2, 4)
A()(x)
B()(x)
