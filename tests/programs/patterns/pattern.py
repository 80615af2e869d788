"""Pattern: one way in which training steps keep state, and what its makers use. Key types: Pattern, Made."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

Made = tuple[Callable[..., Any], Callable[[], Any]]
"""A step and what gives the state that it works on. The step takes any of the arguments of ``arguments``, by name."""


@dataclass(frozen=True)
class Pattern:
    """``make`` makes a fresh world and returns its step and its state."""

    name: str
    kind: str
    make: Callable[[], Made]


PATTERNS: dict[str, Pattern] = {}


def pattern(make: Callable[[], Made]) -> Callable[[], Made]:
    """Adds the pattern with the name of the function, of the kind that its file is named after."""
    name = make.__name__
    assert name not in PATTERNS, name
    PATTERNS[name] = Pattern(name, make.__module__.rsplit(".", 1)[-1], make)
    return make


def net(outputs: int = 2) -> nn.Sequential:
    return nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, outputs))


def sgd(model: nn.Module, lr: float = 0.05, **options: Any) -> torch.optim.SGD:
    return torch.optim.SGD(model.parameters(), lr=lr, **options)


def points(rows: int = 8) -> tuple[torch.Tensor, torch.Tensor]:
    """Inputs and targets of a regression."""
    return torch.randn(rows, 4), torch.randn(rows, 2)


def labelled(rows: int = 8, classes: int = 2) -> tuple[torch.Tensor, torch.Tensor]:
    """Inputs and classes."""
    return torch.randn(rows, 4), torch.randint(classes, (rows,))


def arguments(calls: int) -> list[dict[str, Any]]:
    """For each call what a step may ask for: ``i``, its number, and the batch ``x``, ``y``, ``labels``."""
    generator = torch.Generator().manual_seed(7)
    made: list[dict[str, Any]] = []
    for i in range(calls):
        x, y = torch.randn(6, 4, generator=generator), torch.randn(6, 2, generator=generator)
        made.append({"i": i, "x": x, "y": y, "labels": torch.randint(2, (6,), generator=generator)})
    return made
