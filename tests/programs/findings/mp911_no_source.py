"""A gate written at run time: what it does is shown at its call."""

import torch
from torch import nn

namespace = {}
exec("def gate(x):\n    return x if x.sum() > 0 else -x\n", namespace)
gate = namespace["gate"]


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x):
        return gate(self.layer(x))  # expect: MP101 `gate(self.layer(x))`, MP911 `gate(self.layer(x))`


torch.manual_seed(0)
Net()(torch.randn(2, 4))
