"""A module whose class defines ``__call__`` is called without torch's: compiling it in place would have no effect."""

from __future__ import annotations

import warnings
from typing import Any

import pytest
import torch
from torch import nn

import magpy_core


class Bypasses(nn.Module):
    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        return x * 2


class GoesOn(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * 2

    def __call__(self, *args: Any) -> Any:
        return super().__call__(*args)


def test_it_is_said() -> None:
    module = Bypasses()
    with pytest.warns(UserWarning, match=r"no effect on a Bypasses.*compile\(module.__call__\)"):
        assert magpy_core.compile(module, backend="eager") is module
    assert module(torch.ones(1)).item() == 2.0


def test_what_it_says_works() -> None:
    call = magpy_core.compile(Bypasses().__call__, backend="eager")
    assert [call(torch.ones(1)).item() for _ in range(3)] == [2.0] * 3
    assert magpy_core.captures(call)


def test_one_that_goes_on_is_compiled() -> None:
    module = GoesOn()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        magpy_core.compile(module, backend="eager")
    assert [module(torch.ones(1)).item() for _ in range(3)] == [2.0] * 3
    assert magpy_core.captures(module)
