"""A whole training step as one region, whose backward pass is to be differentiated again: that can't be recorded yet."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 1)


def train_step(x, y):  # region
    loss = nn.functional.mse_loss(model(x), y)
    loss.backward(create_graph=True)  # expect: MP118 `loss.backward(create_graph=True)`
    return loss


for _ in range(2):
    train_step(torch.randn(3, 4), torch.randn(3, 1))
