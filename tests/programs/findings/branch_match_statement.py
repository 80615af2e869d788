"""A match statement on a number read from a tensor."""

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(4, 4) for _ in range(3)])

    def forward(self, x):
        match x.argmax().item() % 3:
            case 0:  # expect: MP101 `0`
                return self.layers[0](x)
            case 1:
                return self.layers[1](x)
            case _:
                return self.layers[2](x)


torch.manual_seed(0)
Net()(torch.tensor([[5.0, 1.0, 0.0, 0.0]]))
