"""The address in an object's default text."""

import torch
from torch import nn


class Tag:
    pass


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x):
        name = f"tag {Tag()}"  # expect: MP103 `Tag()`
        other = str(Tag())  # expect: MP103 `str(Tag())`
        return self.layer(x) * len(name + other)


torch.manual_seed(0)
Net()(torch.randn(2, 4))
