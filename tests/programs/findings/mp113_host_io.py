"""Activations dumped to a file from inside the model, and a tensor printed."""

import os
import tempfile

import torch
from torch import nn

FOLDER = tempfile.mkdtemp()


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x):
        h = self.layer(x)
        with open(os.path.join(FOLDER, "shapes.txt"), "a") as out:  # expect: MP113 `open(os.path.join(FOLDER, "shapes.txt"), "a")`
            out.write(str(tuple(h.shape)))  # expect: MP113 `out.write(str(tuple(h.shape)))`
        return h


torch.manual_seed(0)
net = Net()
net(torch.randn(2, 4))
os.remove(os.path.join(FOLDER, "shapes.txt"))
os.rmdir(FOLDER)
