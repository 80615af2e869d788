"""Programs beside the user's own torch.compile: last, because its caches stay in the process. See tests/soundness/harness/world.py."""

# ruff: noqa
import torch


def args(i):
    return (torch.ones(2, 3) * (i + 1),)


# === torch_compile_inside: alone
@torch.compile(backend="eager")
def inner(x):
    return x * 2


def region(x):
    return inner(x) + 1
