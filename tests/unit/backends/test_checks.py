"""What eager's kernels check of data: a compiled graph raises what eager raises, or does not end the process."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F

import magpy_core
from magpy_core.regions.api import region_of

W = torch.arange(12.0).reshape(4, 3)
Operation = Callable[[torch.Tensor], torch.Tensor]
CHECKED: dict[str, Operation] = {
    "index_select": lambda i: W.index_select(0, i) * 2,
    "index_select, by function": lambda i: torch.index_select(W, 1, i) * 2,
    "index_add": lambda i: torch.zeros(4, 3).index_add(0, i, W[:2]) * 2,
    "index_copy_": lambda i: torch.zeros(4, 3).index_copy_(0, i, W[:2]) * 2,
    "index": lambda i: W[i] * 2,
    "embedding": lambda i: F.embedding(i, W) * 2,
    "binary_cross_entropy": lambda i: F.binary_cross_entropy(i / 2, torch.ones(2)) * 2,
    "binary_cross_entropy, target": lambda i: F.binary_cross_entropy(torch.tensor([0.25, 0.5]), i / 2) * 2,
    "scatter of a number": lambda i: torch.zeros(3).scatter(0, i, 1.0) * 2,
    "scatter_ of a number": lambda i: torch.zeros(3).scatter_(0, i, value=1.0) * 2,
    "scatter": lambda i: torch.zeros(3).scatter(0, i, W[0, :2]) * 2,
    "gather": lambda i: W[0].gather(0, i) * 2,
    "repeat_interleave": lambda i: torch.repeat_interleave(W[:2], i, 0, output_size=3) * 2,
    "repeat_interleave, all alike": lambda i: W[:2].repeat_interleave(i[1:], dim=0, output_size=2) * 2,
    "bernoulli": lambda i: torch.bernoulli(i / 2) * 0,
    "bernoulli of a number": lambda i: i.float().bernoulli(0.5) * 0,
    "bernoulli_ of a number": lambda i: i.float().bernoulli_(1.0) * 2,
    "normal": lambda i: torch.normal(torch.zeros(2), i.float()).abs() * 0,
    "div, trunc": lambda i: torch.div(torch.tensor([4, 5]), i, rounding_mode="trunc") + 1,
    "floor_divide": lambda i: torch.tensor([4, 5]) // i + 1,
    "floor_divide of a number": lambda i: 7 // i + 1,
    "div in place": lambda i: torch.tensor([4, 5]).div_(i, rounding_mode="trunc") + 1,
    "remainder": lambda i: torch.tensor([4, 5]) % i + 1,
    "fmod": lambda i: torch.fmod(torch.tensor([4, 5]), i) + 1,
}


def told(operation: Operation, values: list[int]) -> Any:
    try:
        result = operation(torch.tensor(values))
    except Exception as error:
        return type(error).__name__
    return result.dtype, result.tolist()


@pytest.mark.parametrize("backend", ["aot_eager", pytest.param("inductor", marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", CHECKED)
def test_data_that_eager_refuses(name: str, backend: str) -> None:
    compiled = magpy_core.compile(CHECKED[name], backend=backend)
    for values in ([1, 1], [1, 2], [2, 1], [0, -1], [1, 5], [-9, 0], [0, 1], [1, 1]):
        assert told(compiled, values) == told(CHECKED[name], values), values
    assert region_of(compiled).hits


@pytest.mark.slow
@pytest.mark.parametrize("length", [3, 8, 64, 1000])
def test_a_zero_among_many_divisors(length: int) -> None:
    """Vectors of divisors are looked at before any is divided by: the process would end."""

    def region(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return torch.div(a, b, rounding_mode="trunc") * 2

    compiled = magpy_core.compile(region, backend="inductor")
    a, b = torch.arange(length) - 5, torch.arange(length) % 7 + 1
    for _ in range(3):
        assert torch.equal(compiled(a, b), region(a, b))
    for place in (0, length // 2, length - 1):
        zero = b.clone()
        zero[place] = 0
        with pytest.raises(RuntimeError, match="ZeroDivisionError"):
            compiled(a, zero)


@pytest.mark.parametrize("backend", ["aot_eager", pytest.param("inductor", marks=pytest.mark.slow)])
def test_what_torch_compiles_wrongly_runs_as_plain_python(backend: str) -> None:
    def margin(x: torch.Tensor, out: torch.Tensor) -> Any:
        return F.multilabel_margin_loss(x[:1, :2], torch.tensor([[0, -1]]))

    def rank(x: torch.Tensor, out: torch.Tensor) -> Any:
        return torch.linalg.matrix_rank(x[:, :3] + x[:, :3].mT, hermitian=True, out=out)

    for region in (margin, rank):
        compiled = magpy_core.compile(region, backend=backend)
        for k in range(3):
            outs = torch.zeros((), dtype=torch.long), torch.zeros((), dtype=torch.long)
            x = torch.arange(9.0).reshape(3, 3).sin() + k
            assert compiled(x, outs[0]).item() == region(x, outs[1]).item() and torch.equal(*outs)
        assert "MP916" in {f.code for f in region_of(compiled).findings.values()}
