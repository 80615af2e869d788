"""A region that goes through a generator made outside, with a for loop and with zip."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 1)


def batches(n):
    for _ in range(n):
        yield torch.randn(2, 4)


def total(source, labels):  # region
    loss = torch.zeros(())
    for x in source:  # expect: MP108 `source`
        loss = loss + model(x).mean()
    for x, y in zip(labels, range(3)):  # expect: MP108 `zip(labels, range(3))`
        loss = loss + model(x).mean() * y
    return loss


total(batches(2), batches(3))
