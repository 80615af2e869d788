"""Python's types as dtypes: torch takes ``int`` for ``torch.int64``, and so does a graph."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import magpy_core


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("dtype", [bool, int, float, complex])
def test_a_type_of_python_is_a_dtype(dtype: Any, backend: str) -> None:
    def region(x: torch.Tensor) -> Any:
        return torch.zeros(3, dtype=dtype), x.to(dtype), x.new_ones(2, dtype=dtype), torch.tensor([1], dtype=dtype)

    compiled = magpy_core.compile(region, backend=backend, fullgraph=True)
    for k in range(3):
        x = torch.arange(3.0) + k
        for expected, got in zip(region(x), compiled(x), strict=True):
            assert expected.dtype == got.dtype and torch.equal(expected, got)
    assert magpy_core.captures(compiled)


def test_no_other_type_is_one() -> None:
    def region(x: torch.Tensor) -> torch.Tensor:
        return x.to(str)  # type: ignore[call-overload, no-any-return]

    with pytest.raises(TypeError):
        magpy_core.compile(region, backend="eager")(torch.ones(2))
