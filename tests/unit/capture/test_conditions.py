"""Decisions on the data of inputs are guards: one graph a decision, no cut, nothing computed twice."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import magpy_core
from magpy_core.findings import Severity
from magpy_core.regions.api import region_of


def masked(x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    h = x.exp()
    if mask.all():
        return h
    return h * mask


def run(f: Any, *inputs: tuple[Any, ...]) -> Any:
    compiled = magpy_core.compile(f, backend="eager")
    for args in inputs:
        torch.testing.assert_close(compiled(*args), f(*args))
    return compiled


X, FULL, PADDED = torch.rand(3), torch.ones(3), torch.tensor([1.0, 0.0, 1.0])


def test_one_graph_for_each_side() -> None:
    compiled = run(masked, (X, FULL), (X, PADDED), (X, FULL), (X, PADDED), (X, 1 - PADDED))
    region = region_of(compiled)
    assert (region.recordings, region.hits) == (2, 3)
    for capture in region.captures:
        assert capture.is_complete
        names = [str(n.target) for n in capture.operator_graph.graph.nodes if n.op.startswith("call")]
        assert not any("all" in name or "bool" in name for name in names), "the decision is not in the graph"
    (finding,) = [f for f in region.findings.values() if f.code == "MP101"]
    assert "before the graph runs" in finding.message and finding.severity is Severity.INFORMATION
    assert region.summary().complete and region.summary().graph_breaks == 0


def test_a_capture_that_decided_otherwise_does_not_match() -> None:
    compiled = run(masked, (X, FULL))
    (capture,) = magpy_core.captures(compiled)
    assert capture.matches((X, FULL), {})
    assert not capture.matches((X, PADDED), {})


def test_a_number_read() -> None:
    def times(x: torch.Tensor, n: torch.Tensor) -> torch.Tensor:
        for _ in range(int(n.max())):
            x = x * 2
        return x

    compiled = run(times, *((X, torch.tensor([1, n])) for n in (2, 2, 3, 2, 3)))
    assert (region_of(compiled).recordings, region_of(compiled).hits) == (2, 3)
    assert all(capture.is_complete for capture in magpy_core.captures(compiled))


def written(x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    mask.mul_(2)
    return x if (mask > 1).all() else x * 2


def computed(x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    return x if (x @ mask) > 1 else x * 2


def drawn(x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    return x if torch.rand(()) < 0.5 else x * 2


@pytest.mark.parametrize("f", [written, computed, drawn])
def test_what_stays_in_the_graph(f: Any) -> None:
    """A value that was written to, work that belongs into the graph, randomness: the graph is cut, as the order matters."""
    compiled = magpy_core.compile(f, backend="eager")
    compiled(X, PADDED.clone())
    (capture,) = magpy_core.captures(compiled)
    assert not capture.is_complete
