"""Writes shifted sine waves."""

import os

import numpy as np
import torch

rng = np.random.default_rng(2)
T, L, N = 6, 40, 30
x = np.arange(L) + rng.integers(-4 * T, 4 * T, N).reshape(N, 1)
folder = os.path.dirname(os.path.abspath(__file__))
with open(os.path.join(folder, "traindata.pt"), "wb") as f:
    torch.save(torch.from_numpy(np.sin(x / T)), f)
