"""A gradient penalty: the gradient is taken inside the region."""

import torch
from torch import nn

torch.manual_seed(0)
critic = nn.Linear(4, 1)


def penalty(x):  # region
    x = x.detach().requires_grad_()
    score = critic(x).sum()
    score.backward(create_graph=True)  # expect: MP118 `score.backward(create_graph=True)`
    return x.grad.norm()  # expect: MP118 `x.grad`


penalty(torch.randn(2, 4))
