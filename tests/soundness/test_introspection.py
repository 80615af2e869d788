"""What objects of all kinds tell about themselves: a sample in every run of the tests, all of it when ``slow``."""

from __future__ import annotations

import inspect
import types

import pytest
import torch

import magpy_core
from tests.soundness.generators.introspection import every, told_of

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.mark.parametrize("start", range(4))
def test_a_sample(start: int) -> None:
    assert [line for pair in every()[start * 17 :: 97] if (line := told_of(*pair)) is not None] == []


@pytest.mark.slow
@pytest.mark.parametrize("part", range(4))
def test_all(part: int) -> None:
    assert [line for pair in every()[part::4] if (line := told_of(*pair)) is not None] == []


def test_a_function_that_wraps_itself() -> None:
    def function(a: int) -> int:
        return a

    function.__wrapped__ = function  # type: ignore[attr-defined]
    nameless = types.ModuleType("nameless")
    del nameless.__name__

    def region(x: torch.Tensor) -> tuple[torch.Tensor, list[str]]:
        said = []
        for ask in (lambda: inspect.signature(function), lambda: nameless.nothing):
            try:
                ask()
            except (ValueError, AttributeError) as error:
                said.append(str(error)[:20])
        return x, said

    compiled = magpy_core.compile(region, backend="eager")
    for _ in range(3):
        assert compiled(torch.ones(1))[1] == region(torch.ones(1))[1] == ["wrapper loop when un", "module has no attrib"]
