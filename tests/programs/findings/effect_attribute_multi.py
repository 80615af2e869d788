"""Attributes written in one statement, deleted, and set by setattr."""

import torch
from torch import nn


class State:
    def __init__(self):
        self.old, self.a, self.b = 1, 2, 3


state = State()
model = nn.Linear(4, 4)


def run(x):  # region
    state.a, state.b = x.shape  # expect: MP301 `state.a`, MP301 `state.b`
    if hasattr(state, "old"):
        del state.old  # expect: MP301 `state.old`
    setattr(state, "mean", model(x).mean())  # expect: MP301 `setattr(state, "mean", model(x).mean())`
    return state.mean * 2


torch.manual_seed(0)
run(torch.randn(2, 4))
