"""Divisions that round and remainders have eager's results under Inductor, bit by bit, in every dtype."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import pytest
import torch

import magpy_core
from magpy_core.regions.api import region_of

Division = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
DIVISIONS: list[Division] = [
    lambda a, b: a // b,
    lambda a, b: a // 0.1,
    lambda a, b: 7.0 // b,
    lambda a, b: torch.div(a, b, rounding_mode="floor"),
    lambda a, b: torch.div(a, b, rounding_mode="trunc"),
    lambda a, b: a % b,
    lambda a, b: a % 0.1,
    lambda a, b: a % float("inf"),
    lambda a, b: 7.0 % b,
    lambda a, b: torch.fmod(a, b),
    lambda a, b: torch.fmod(a, 0.3),
    lambda a, b: a.clone().remainder_(3),
]
NUMBERS = [
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.5,
    10.0,
    0.1,
    -0.1,
    6.0,
    0.2,
    float("inf"),
    -float("inf"),
    float("nan"),
    1e-40,
    7.5,
    1 / 3,
]
INTEGERS = [1.0, 2.0, 3.0, 7.0, 100.0]


def every(a: torch.Tensor, b: torch.Tensor) -> list[torch.Tensor]:
    return [divide(a, b) for divide in DIVISIONS]


def bits(values: torch.Tensor) -> list[str]:
    return [repr(value) for value in values.tolist()]  # of zeros, the sign too


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16, torch.int64], ids=str)
def test_they_are_eagers(dtype: torch.dtype) -> None:
    pairs = list(itertools.product(NUMBERS if dtype.is_floating_point else INTEGERS, repeat=2))
    a, b = (torch.tensor(side, dtype=torch.float64).to(dtype) for side in zip(*pairs, strict=True))
    compiled = magpy_core.compile(every)
    for _ in range(3):
        results = compiled(a, b)
    assert region_of(compiled).hits
    for i, (result, expected) in enumerate(zip(results, every(a, b), strict=True)):
        assert bits(result) == bits(expected), i


@pytest.mark.slow
def test_of_numbers_that_vary() -> None:
    """A schedule's arithmetic is part of the graph."""

    def scaled(x: torch.Tensor, epoch: float) -> torch.Tensor:
        return x * (epoch // 0.1) + epoch % 0.3

    compiled, x = magpy_core.compile(scaled), torch.ones(3)
    for epoch in (0.7, 0.9, 1.0, 0.5, 2.0, 0.3):
        assert bits(compiled(x, epoch)) == bits(scaled(x, epoch)), epoch
    assert region_of(compiled).hits
