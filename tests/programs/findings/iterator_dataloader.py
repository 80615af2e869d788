"""A step that pulls its batch from the iterator of a DataLoader."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
model = nn.Linear(4, 1)
loader = iter(DataLoader(TensorDataset(torch.randn(8, 4)), batch_size=2))


def step():  # region
    (x,) = next(loader)  # expect: MP108 `next(loader)`
    return model(x).mean()


for _ in range(2):
    step()
