"""The first capture, where the call itself has changed what its guards require."""

from __future__ import annotations

import functools
from types import SimpleNamespace
from typing import Any

import torch

import magpy_core
from magpy_core.regions.api import region_of
from tests.unit.engine_pair import Pair

X = torch.ones(2)


def test_state_that_the_first_call_creates() -> None:
    holder = SimpleNamespace(cache=None)

    def region(x: torch.Tensor) -> torch.Tensor:
        if holder.cache is None:
            holder.cache = x * 2
        return holder.cache + x

    compiled = magpy_core.compile(region, backend="eager")
    compiled(X)
    found = region_of(compiled)
    assert not found.captures and found.recordings == 0 and len(magpy_core.captures(compiled)) == 1
    for _ in range(3):
        assert torch.equal(compiled(X), X * 3)
    assert (len(found.captures), found.hits, found.recordings) == (1, 2, 1)
    assert found.policy.spent is None


def test_it_shows_what_varies() -> None:
    def world() -> Any:
        best = SimpleNamespace(value=100.0)

        def region(x: torch.Tensor, i: int) -> Any:
            best.value = min(best.value, 50.0 - i)
            return x * best.value

        return region, best

    assert Pair(world).calls(*[(X, i) for i in range(6)]).counts == (1, 4)


def test_states_that_alternate_are_served_all_the_same() -> None:
    def world() -> Any:
        state = SimpleNamespace(odd=False)

        def region(x: torch.Tensor) -> torch.Tensor:
            state.odd = not state.odd
            return x * 2 if state.odd else x * 3

        return region, state

    assert Pair(world).calls(*[(X + i,) for i in range(8)]).counts == (2, 5)


def test_the_same_call_twice_is_no_reason() -> None:
    compiled = magpy_core.compile(lambda x: x + 1, backend="eager")
    compiled(X)
    assert len(region_of(compiled).captures) == 1


def test_only_the_first_is_left_out() -> None:
    phases = SimpleNamespace(left=["a", "b", "c"])

    def region(x: torch.Tensor) -> torch.Tensor:
        name = phases.left[0] if phases.left else "end"
        phases.left = phases.left[1:]
        return x * 2 if name == "b" else x

    compiled = magpy_core.compile(region, backend="eager")
    for expected in (X, X * 2, X, X, X):
        assert torch.equal(compiled(X), expected)
    assert len(region_of(compiled).captures) == 3


def test_the_statistics_of_a_cache_stay() -> None:
    @functools.lru_cache
    def scale(n: int) -> float:
        return n * 2.0

    holder = SimpleNamespace(state=0)

    def region(x: torch.Tensor) -> torch.Tensor:
        holder.state = -holder.state or 1
        return x * scale(3)

    compiled = magpy_core.compile(region, backend="eager")
    compiled(X)
    assert (scale.cache_info().hits, scale.cache_info().misses) == (0, 1)
