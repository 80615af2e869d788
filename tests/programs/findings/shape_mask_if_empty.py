"""Is anything selected? Asked by the size of a masked tensor."""

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x):
        picked = x[x[:, 0] > 0]
        if picked.numel() == 0:  # expect: MP109 `picked.numel()`
            return self.layer(x).mean()
        return self.layer(picked).mean()


torch.manual_seed(0)
Net()(torch.randn(5, 4))
