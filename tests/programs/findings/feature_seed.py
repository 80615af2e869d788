"""The seed set inside the region, and a generator of its own."""

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x):
        torch.manual_seed(3)  # expect: MP116 `torch.manual_seed(3)`
        generator = torch.Generator()  # expect: MP116 `torch.Generator()`
        return self.layer(x) + torch.rand(4)


torch.manual_seed(0)
Net()(torch.randn(2, 4))
