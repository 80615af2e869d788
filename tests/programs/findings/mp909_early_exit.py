"""A script that stops after one step of the three that were asked for; its finding is about the file."""  # expect: MP909 (file)

# run: cli
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
model(torch.randn(2, 4)).mean().backward()
optimizer.step()
