"""Several optimizers, with momentum, weight decay, several groups and a learning rate that changes."""

import torch
from torch import nn

torch.manual_seed(0)
for make in (
    lambda ps: torch.optim.SGD(ps, lr=0.1, momentum=0.9, nesterov=True),
    lambda ps: torch.optim.Adam(ps, lr=0.1, amsgrad=True),
    lambda ps: torch.optim.RMSprop(ps, lr=0.1),
    lambda ps: torch.optim.Adagrad(ps, lr=0.1),
):
    model = nn.Linear(4, 2)
    optimizer = make([{"params": [model.weight], "weight_decay": 0.1}, {"params": [model.bias]}])
    for step in range(4):
        optimizer.zero_grad()
        model(torch.randn(3, 4)).mean().backward()
        optimizer.step()
        optimizer.param_groups[0]["lr"] *= 0.9
