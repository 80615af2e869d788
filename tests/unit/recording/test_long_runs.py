"""A recording takes time in proportion to what the region does: it may be a whole evaluation inside a training loop."""

from __future__ import annotations

import gc
import io
from types import SimpleNamespace

import pytest
import torch

import magpy_core
from magpy_core.opgraph import conditions
from magpy_core.recording import dispatch
from magpy_core.recording.access import reads
from magpy_core.regions.api import region_of

LAYER = torch.nn.Linear(1, 1)


def _decides(x: torch.Tensor) -> list[int]:
    counts = []
    for row in x * 2:
        if row.sum() > 0:
            counts.append(1)
    return counts


def test_a_decision_looks_at_what_it_depends_on(monkeypatch: pytest.MonkeyPatch) -> None:
    looked_at = []

    def node_name(node: torch.fx.Node) -> str:
        looked_at.append(node)
        return original(node)

    original = conditions.node_name
    monkeypatch.setattr(conditions, "node_name", node_name)

    def looks(rows: int) -> int:
        looked_at.clear()
        x = torch.linspace(-1, 1, rows).reshape(rows, 1)
        assert magpy_core.compile(_decides, backend="eager")(x) == _decides(x)
        return len(looked_at)

    few = looks(10)
    assert 0 < few and looks(80) <= 8 * few


def test_a_condition_under_autocast_belongs_in_the_graph() -> None:
    def region(x: torch.Tensor) -> torch.Tensor:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            inside = x @ x
            if inside.sum() > 0:
                return x + 1
        return x - 1

    def after(x: torch.Tensor) -> torch.Tensor:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            y = x @ x
        return y + 1 if x.sum() > 0 else y - 1

    for function, segments in ((region, 2), (after, 1)):
        compiled = magpy_core.compile(function, backend="eager")
        for x in (torch.eye(2), torch.eye(2), torch.eye(2) * -3, torch.eye(2)):
            assert torch.equal(compiled(x), function(x))
        assert {len(capture.segments) for capture in magpy_core.captures(compiled)} == {segments}


def test_a_function_of_torch_is_searched_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """``torch.save`` makes a function that reads its own name for each object that is pickled."""
    searched = []

    def get_objects(generation: int) -> list[object]:
        searched.append(generation)
        return gc.get_objects(generation)

    monkeypatch.setattr(reads, "gc", SimpleNamespace(get_objects=get_objects))

    def region(x: torch.Tensor) -> torch.Tensor:
        torch.save({f"{i}": x for i in range(60)}, io.BytesIO())
        return x * 2

    magpy_core.compile(region, backend="eager")(torch.ones(2))
    assert 0 < len(searched) < 10


def test_a_call_that_asks_for_values_without_end_is_not_recorded_to_its_end() -> None:
    def region(x: torch.Tensor) -> tuple[list[int], torch.Tensor]:
        found = []
        for row in x * 2:
            if LAYER(row) > 0:
                found.append(len(found))
        return found, torch.rand(2)

    compiled = magpy_core.compile(region, backend="eager")
    x = torch.arange(2500.0).reshape(2500, 1)
    results = []
    for function in (compiled, compiled, region):
        torch.manual_seed(1)
        results.append(function(x))
    assert results[0][0] == results[1][0] == results[2][0]
    assert torch.equal(results[0][1], results[2][1]) and torch.equal(results[1][1], results[2][1])
    found = region_of(compiled)
    assert found.disabled and not found.captures
    assert any("asked for tensor values 2000 times" in finding.message for finding in found.findings.values())


def test_a_call_of_too_many_operations_is_not_recorded_to_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dispatch, "_MOST_OPERATIONS", 200)
    looked_at = []

    def region(x: torch.Tensor, rounds: int) -> torch.Tensor:
        for _ in range(rounds):
            looked_at.append(len(looked_at))
            x = torch.sin(x) * 2
        return x

    compiled = magpy_core.compile(region, backend="eager")
    x = torch.ones(2)
    assert torch.equal(compiled(x, 300), region(x, 300))
    assert looked_at == list(range(600))
    found = region_of(compiled)
    assert not found.captures
    (finding,) = (one for one in found.findings.values() if one.code == "MP915")
    assert finding.message.endswith("runs in a call of more than 200 operations, too many for one graph.")
    few = magpy_core.compile(region, backend="eager")
    assert torch.equal(few(x, 3), region(x, 3)) and len(magpy_core.captures(few)) == 1
