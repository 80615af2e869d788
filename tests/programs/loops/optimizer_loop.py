"""Step functions with optimizers from packages."""

import sys

import torch
from lion_pytorch import Lion
from schedulefree import AdamWScheduleFree
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 1))
if sys.argv[1] == "lion":
    optimizer = Lion(model.parameters(), lr=0.001, weight_decay=0.1)
else:
    optimizer = AdamWScheduleFree(model.parameters(), lr=0.01)
    optimizer.train()
x = torch.randn(64, 4)
y = x.sum(1, keepdim=True)


def train_step(x, y):
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x), y)
    loss.backward()
    optimizer.step()
    return loss.item()


for i in range(24):
    at = i % 8 * 8
    print(f"{train_step(x[at : at + 8], y[at : at + 8]):.6f}")
