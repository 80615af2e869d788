"""An argument changed in place: the caller sees it, and the finding says so."""

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x, out):
        out += self.layer(x).detach()  # expect: MP306 `out += self.layer(x).detach()`
        out[0] = 0  # expect: MP306 `out[0]`
        torch.mul(x, 2, out=out)  # expect: MP306 `torch.mul(x, 2, out=out)`
        return out.sum()


torch.manual_seed(0)
Net()(torch.randn(2, 4), torch.zeros(2, 4))
