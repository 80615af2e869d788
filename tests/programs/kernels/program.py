"""A program of this folder: what is captured, what it is called with, and what must be the same as in eager mode.

Key types: Program, Case. Key function: programs_of.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn

Numbers = Mapping[str, torch.Tensor]
"""The tensors of a run by name: results, arguments, state, and their gradients."""

GROUPS = (
    ("pointwise", "rows", "numbers"),
    ("normalization", "losses", "randomness", "images"),
    ("optimizers", "indexing", "precision"),
    ("shapes", "models"),
)
"""The modules with programs, in parts that take about as long, each in a process."""


@dataclass(frozen=True)
class Case:
    """``args(i)``: the arguments of call ``i``. ``state``: what is compared apart from results and arguments."""

    region: Callable[..., Any]
    args: Callable[[int], tuple[Any, ...]]
    state: Mapping[str, nn.Module | torch.Tensor] = field(default_factory=dict)


@dataclass(frozen=True)
class Program:
    """``warm``: how many calls come before the compared one, the last of them recorded. ``combined``: independent loops
    become one kernel. ``tolerance``: relative and absolute. ``check``: what must hold of a run in place of equality with
    eager mode, whose random numbers differ: says what does not. ``unsupported``: a part of the error with which the
    interpreter refuses the program, and why it does."""

    name: str
    make: Callable[[], Case]
    warm: int = 1
    combined: bool = False
    tolerance: tuple[float, float] = (2e-5, 2e-5)
    check: Callable[[Numbers], str | None] | None = None
    unsupported: tuple[str, str] | None = None


_KNOWN: dict[str, dict[str, Program]] = {}


def program(**options: Any) -> Callable[[Callable[[], Case]], Callable[[], Case]]:
    """Adds the program that the function makes to those of its module."""

    def add(make: Callable[[], Case]) -> Callable[[], Case]:
        group = make.__module__.rpartition(".")[2]
        _KNOWN.setdefault(group, {})[make.__name__] = Program(make.__name__, make, **options)
        return make

    return add


def programs_of(group: str) -> dict[str, Program]:
    """By name."""
    importlib.import_module(f"tests.programs.kernels.{group}")
    return _KNOWN[group]


def leaf(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """Random numbers that gradients are computed for."""
    return torch.randn(shape, dtype=dtype).requires_grad_()
