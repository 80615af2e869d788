"""What runs under torch.utils.checkpoint keeps no activations in a replay either."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.checkpoint import checkpoint

import magpy_core


class Counting(TorchDispatchMode):
    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.names.append(func.overloadpacket.__name__)
        return func(*args, **(kwargs or {}))


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(3, 3)

    def inner(self, x: torch.Tensor) -> torch.Tensor:
        return torch.tanh(self.linear(x)).exp()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return checkpoint(self.inner, x, use_reentrant=False).sin()  # type: ignore[union-attr]


def test_activations_are_computed_again() -> None:
    module = Block()
    compiled = magpy_core.compile(module, backend="eager", fullgraph=True)
    counts = []
    for target in (module, compiled, compiled, compiled):
        y = target(torch.ones(2, 3)).sum()
        with Counting() as counting:
            y.backward()
        counts.append((counting.names.count("tanh"), counting.names.count("sin")))
    assert compiled.__magpy_region__.hits == 2
    assert counts == [(1, 0)] * 4
