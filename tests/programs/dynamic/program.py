"""A program with data-dependent control flow, as tests and benchmark see it. Key type: Program. Key function: generator."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn


@dataclass(frozen=True)
class Program:
    """``call(input(i))`` is the i-th call; ``input(i)`` depends on i only.

    ``model``: what holds the state. ``trains``: a call also makes the backward pass and the optimizer's step.
    ``regions``: the modules that a user would compile, or ``call`` itself; by default the model."""

    model: nn.Module
    call: Callable[[Any], Any]
    input: Callable[[int], Any]
    trains: bool = False
    regions: tuple[Any, ...] = ()

    def __post_init__(self) -> None:
        if not self.regions:
            object.__setattr__(self, "regions", (self.model,))


def generator(number: int) -> torch.Generator:
    """For random numbers on the default device: torch draws there from a generator of that device only."""
    return torch.Generator(torch.get_default_device()).manual_seed(number)
