"""A method chain over several lines with the finding in its middle."""

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x):
        return (
            self.layer(x)
            .mul(2.0)
            .masked_fill(
                x > 0,
                float(
                    id(object()) % 2  # expect: MP103 `id(object())`
                ),
            )
            .sum()
        )


torch.manual_seed(0)
Net()(torch.randn(2, 4))
