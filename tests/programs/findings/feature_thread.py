"""A thread made inside the region: the recording ends there."""

import threading

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)
        self.out = []

    def forward(self, x):
        worker = threading.Thread(target=self.out.append)  # expect: MP103 `threading.Thread(target=self.out.append)`
        worker.start()
        worker.join()
        return self.layer(x)


torch.manual_seed(0)
Net()(torch.randn(2, 4))
