"""Evaluation under no_grad and in eval mode, accuracy read outside."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 3))
model.eval()
correct = 0
with torch.no_grad():
    for _ in range(3):
        x, y = torch.randn(8, 4), torch.randint(3, (8,))
        correct += (model(x).argmax(-1) == y).sum().item()
print("accuracy", correct / 24)
