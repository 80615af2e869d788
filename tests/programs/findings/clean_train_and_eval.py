"""A model that goes back and forth between training and evaluation."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.5), nn.BatchNorm1d(8), nn.Linear(8, 1))
for epoch in range(2):
    model.train()
    for _ in range(2):
        model(torch.randn(4, 4)).mean().backward()
    model.eval()
    with torch.no_grad():
        for _ in range(2):
            model(torch.randn(4, 4))
