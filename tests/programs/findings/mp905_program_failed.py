"""A training script that fails in its second step."""

# run: cli
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for width in (4, 5):
    loss = model(torch.randn(2, width)).mean()  # expect: MP905 `model(torch.randn(2, width))`
    loss.backward()
    optimizer.step()
