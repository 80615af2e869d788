"""Loss modules made anew at each step, and functional losses."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 3)
for _ in range(3):
    scores, target = model(torch.randn(5, 4)), torch.randint(3, (5,))
    loss = nn.CrossEntropyLoss(label_smoothing=0.1)(scores, target)
    loss = loss + nn.MSELoss()(scores, torch.zeros_like(scores)) + nn.functional.l1_loss(scores, scores.detach())
    loss.backward()
