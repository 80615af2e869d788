"""A log file that was opened outside is written in forward."""

import sys

import torch
from torch import nn

log = open("train.log", "w", encoding="utf-8")


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x):
        log.write(f"batch of {x.shape[0]}\n")
        sys.stderr.flush()  # expect: MP113 `sys.stderr.flush()`
        return self.layer(x)


torch.manual_seed(0)
Net()(torch.randn(2, 4))
log.close()
