"""What runs under torch.utils.checkpoint keeps no activations in a replay either."""

from __future__ import annotations

import functools
from typing import Any

import pytest
import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.checkpoint import checkpoint

import magpy_core
from magpy_core.regions.api import region_of
from tests.unit.engine_pair import plainly

pytestmark = pytest.mark.skipif(
    tuple(map(int, torch.__version__.split(".")[:2])) < (2, 13),
    reason="refused before torch 2.13 (MP107): there a library calls a custom function in a checkpoint",
)


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
    for target in (functools.partial(plainly, module), compiled, compiled, compiled):
        y = target(torch.ones(2, 3)).sum()
        with Counting() as counting:
            y.backward()
        counts.append((counting.names.count("tanh"), counting.names.count("sin")))
    assert region_of(compiled).hits == 2
    assert counts == [(1, 0)] * 4


def test_a_function_that_was_replaced_is_called_once_in_a_checkpoint(monkeypatch: pytest.MonkeyPatch) -> None:
    """fx prints `torch.tanh` by its name: in a replay that would be what stands there now, which calls the original."""
    original = torch.tanh

    def doubled(x: torch.Tensor) -> torch.Tensor:
        return original(x) * 2

    module = Block()
    compiled = magpy_core.compile(module, backend="eager")
    x = torch.ones(2, 3)
    for replaced in (doubled, original, doubled, original):
        monkeypatch.setattr(torch, "tanh", replaced)
        assert torch.equal(plainly(module, x), compiled(x))
    assert region_of(compiled).hits == 2
