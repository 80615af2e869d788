"""The git commit asked for in the middle of a region."""

import subprocess
import sys

import torch
from torch import nn

model = nn.Linear(4, 1)


def evaluate(x):  # region
    done = subprocess.run([sys.executable, "-c", "pass"])  # expect: MP113 `subprocess.run([sys.executable, "-c", "pass"])`
    return model(x) * (done.returncode + 1)


torch.manual_seed(0)
evaluate(torch.randn(2, 4))
