"""Functions with a cache of their own, called in a region: hits, misses and keywords."""

from __future__ import annotations

import functools
from collections.abc import Callable

import torch

import magpy_core
from magpy_core.regions.api import region_of


def test_a_cache_asked_by_tensor_is_filled_as_plain_python_fills_it() -> None:
    @functools.lru_cache(maxsize=2)
    def weights(mask: torch.Tensor, scale: float = 1.0) -> torch.Tensor:
        return mask.cumsum(0) * scale

    def f(x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        return x * weights(mask, scale=2.0) + weights(mask, scale=2.0)

    masks = [torch.rand(3) for _ in range(3)]
    order = [0, 1, 1, 2, 0, 0]
    expected = [f(torch.ones(3), masks[i]) for i in order]
    info = weights.cache_info()
    weights.cache_clear()
    compiled = magpy_core.compile(f, backend="eager")
    for i, want in zip(order, expected, strict=True):
        torch.testing.assert_close(compiled(torch.ones(3), masks[i]), want)
    assert weights.cache_info() == info
    assert {f.code for f in region_of(compiled).findings.values()} == {"MP106"}


def test_a_call_that_fills_a_cache_is_no_graph_break() -> None:
    @functools.lru_cache
    def table(n: int, *, step: int) -> torch.Tensor:
        return torch.arange(0, n, step)

    compiled = magpy_core.compile(lambda x: x * table(6, step=2), backend="eager", fullgraph=True)
    for _ in range(3):
        torch.testing.assert_close(compiled(torch.ones(3)), torch.tensor([0.0, 2.0, 4.0]))
    assert (region_of(compiled).recordings, region_of(compiled).hits) == (2, 1)


def test_a_cache_that_makes_room_in_every_call() -> None:
    """Of two keys and room for one: each call fills it twice, which no replay would."""

    @functools.lru_cache(maxsize=1)
    def table(n: int) -> torch.Tensor:
        return torch.arange(n) + 0.5

    def f(x: torch.Tensor) -> torch.Tensor:
        return x + table(2).sum() * table(3).sum()

    expected = [f(torch.ones(1) * i) for i in range(5)]
    info = table.cache_info()
    table.cache_clear()
    compiled = magpy_core.compile(f, backend="eager")
    for i, want in enumerate(expected):
        torch.testing.assert_close(compiled(torch.ones(1) * i), want)
    assert table.cache_info() == info
    assert {f.code for f in region_of(compiled).findings.values()} == {"MP111"}


def test_a_tensor_that_the_region_makes_is_never_in_a_cache() -> None:
    runs = []

    @functools.lru_cache(maxsize=1)
    def weights(shape: torch.Size, mask: torch.Tensor | None = None) -> torch.Tensor:
        runs.append(shape)
        return (torch.ones(shape) if mask is None else mask.float()).cumsum(-1)

    def f(x: torch.Tensor) -> torch.Tensor:
        return x * weights(x.shape, x > 0)

    def twice(x: torch.Tensor) -> torch.Tensor:
        mask = x > 0
        return weights(x.shape, mask) + weights(x.shape, mask)

    several = functools.lru_cache(maxsize=4)(weights.__wrapped__)
    inputs = [torch.randn(2, 3) for _ in range(4)]
    for fn, hits in ((f, 3), (twice, 0), (lambda x: x * several(x.shape, x > 0), 0)):
        runs.clear()
        expected = [fn(x) for x in inputs]
        ran = len(runs)
        compiled = magpy_core.compile(fn, backend="eager")
        for x, want in zip(inputs, expected, strict=True):
            torch.testing.assert_close(compiled(x), want)
        assert region_of(compiled).hits == hits and len(runs) == 2 * ran  # a replay repeats what the function does


def test_what_such_a_call_evicts_is_gone() -> None:
    """The program changes what it is given: with the value still in the cache, it would be given the changed one."""

    @functools.lru_cache(maxsize=1)
    def weights(size: int, mask: torch.Tensor | None = None) -> torch.Tensor:
        return torch.ones(size) if mask is None else mask.float()

    def f(x: torch.Tensor) -> torch.Tensor:
        return x * weights(len(x), x > 0)

    def program(call: Callable[[torch.Tensor], torch.Tensor]) -> list[list[float]]:
        weights.cache_clear()
        results = []
        for n in (0, 1, 2, 3, 4, 5):
            results.append(call(torch.tensor([-1.0, 1.0 * n, 2.0])).tolist())
            if n != 3:
                results.append(weights(3).add_(1).tolist())
        return results

    compiled = magpy_core.compile(f, backend="eager")
    assert program(compiled) == program(f)
    assert region_of(compiled).hits == 1  # where nobody had used the cache in between
