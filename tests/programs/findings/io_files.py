"""Files read and written in forward."""

import json
import os
from pathlib import Path

import torch
from torch import nn

Path("config.json").write_text('{"scale": 2.0}')


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x):
        config = json.loads(Path("config.json").read_text())  # expect: MP113 `Path("config.json").read_text()`
        y = self.layer(x) * config["scale"]
        torch.save(y, "activations.bin")  # expect: MP113 `torch.save(y, "activations.bin")`
        if os.path.exists("stop"):  # expect: MP113 `os.path.exists("stop")`
            return x
        return y


torch.manual_seed(0)
Net()(torch.randn(2, 4))
