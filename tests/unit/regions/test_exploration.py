"""Paths are explored before whole calls are compiled."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch

import magpy_core
from magpy_core.backends import get_backend
from magpy_core.capture import graphs
from magpy_core.regions.api import region_of
from tests.soundness.harness.cuts import without_trials


@pytest.fixture(autouse=True)
def no_inductor(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """AOTAutograd in place of Inductor, which takes long. Yields the numbers of operators of what is compiled."""
    compiled: list[int] = []

    class Stub:
        def compile(self, gm: torch.fx.GraphModule, inputs: Any, **options: Any) -> Any:
            compiled.append(sum(node.op.startswith("call") for node in gm.graph.nodes))
            return get_backend("aot_eager").compile(gm, inputs, **options)

    monkeypatch.setattr(graphs, "get_backend", lambda name: Stub())
    with without_trials():
        yield compiled


def gated(x: torch.Tensor, gates: torch.Tensor) -> torch.Tensor:
    for gate in gates:
        x = torch.sin(x) + 1
        if (x.sum() * gate) > 0:
            x = torch.relu(x) * 2
    return x


def call(compiled: Any, gates: list[float]) -> None:
    x = torch.rand(4)
    assert torch.equal(compiled(x, torch.tensor(gates)), gated(x, torch.tensor(gates)))


def test_one_path_is_compiled_whole_after_it_was_seen_again(no_inductor: list[int]) -> None:
    compiled = magpy_core.compile(gated, wait=True)
    for count in range(1, 8):
        call(compiled, [1.0, -1.0, 1.0])
        assert bool(no_inductor) == (count > 4), "recorded four times"
    region = region_of(compiled)
    assert len(region.captures) == region.recordings == 1 and region.hits == 3
    assert region.fallback.stretches is None


def test_two_paths_are_compiled_whole(no_inductor: list[int]) -> None:
    compiled = magpy_core.compile(gated, wait=True)
    for count in range(12):
        call(compiled, [1.0, -1.0, 1.0 if count % 2 else -1.0])
    region = region_of(compiled)
    assert len(region.captures) == region.recordings == 2 and region.hits == 8
    assert region.fallback.stretches is None


def test_many_paths_are_cut_before_anything_is_compiled(no_inductor: list[int]) -> None:
    compiled = magpy_core.compile(gated, wait=True)
    for count in range(30):
        gates = [1.0 if count & bit else -1.0 for bit in (1, 2, 4)]
        call(compiled, gates)
    region = region_of(compiled)
    assert region.fallback.stretches is not None and not region.hits
    assert no_inductor and max(no_inductor) < 8, "only stretches are compiled"
    assert [recompile.name for recompile in region.recompiles] == ["a decision on data or on a random number"] * 1


def test_a_capture_with_one_decision_is_compiled_at_its_second_call(no_inductor: list[int]) -> None:
    compiled = magpy_core.compile(gated, wait=True)
    call(compiled, [1.0])
    call(compiled, [1.0])
    assert no_inductor and region_of(compiled).hits == 1


def test_a_capture_that_is_retired_while_it_is_held_stays_so(no_inductor: list[int]) -> None:
    compiled = magpy_core.compile(gated, wait=True)
    call(compiled, [1.0, -1.0])
    region = region_of(compiled)
    region.retire()
    region.fallback.exploration.end(region.captures)
    for _ in range(6):
        call(compiled, [1.0, -1.0])
    assert not no_inductor and not region.hits


def test_where_it_can_not_be_cut_two_paths_are_compiled(no_inductor: list[int]) -> None:
    space: dict[str, Any] = {"torch": torch}
    exec(compile("def gated(x, gates):\n" + SOURCE, "<no file>", "exec"), space)
    compiled = magpy_core.compile(space["gated"], wait=True)
    for count in range(30):
        call(compiled, [1.0 if count & bit else -1.0 for bit in (1, 2, 4)])
    assert region_of(compiled).fallback.stretches is None


SOURCE = """
    for gate in gates:
        x = torch.sin(x) + 1
        if (x.sum() * gate) > 0:
            x = torch.relu(x) * 2
    return x
"""
