"""A thread started inside the region."""

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
        worker.start()  # expect: MP103 `worker.start()`
        worker.join()  # expect: MP103 `worker.join()`
        return self.layer(x)


torch.manual_seed(0)
Net()(torch.randn(2, 4))
