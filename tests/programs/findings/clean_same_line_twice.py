"""The same call twice in a line, statements behind semicolons, nested f-strings: nothing to report."""

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x):
        y = self.layer(x) + self.layer(x); z = y.relu() if self.training else y  # noqa
        return z, f"{'x'.join(f'{n}' for n in z.shape)}"


torch.manual_seed(0)
net = Net()
for _ in range(2):
    net(torch.randn(2, 4))
