"""Programs that random changes of the world found wrong once, or nearly. See tests/soundness/world.py."""

# ruff: noqa
import torch
from torch import nn


def args(i):
    return (torch.ones(2, 3) * (i + 1),)


# === varying_size_then_no_dimension: nograd calls=8
def region(x):
    rows = [r * 2 for r in x]
    return len(x), rows, x.sum()


def args(i):
    return (torch.ones(i + 2, 3) if i != 4 else torch.tensor(1.0),)


# === varying_size_then_scalar: calls=8
def region(x):
    return x * x.numel() + len(x.shape)


def args(i):
    return (torch.ones(i + 2, 3) if i % 4 != 3 else torch.tensor(float(i)),)


# === varying_size_of_a_warned_output: calls=6
out = torch.zeros(7, 3)


def region(x):
    n = x.shape[0]
    return torch.add(x, 1, out=out), n


def args(i):
    return (torch.ones(i + 2, 3),)
