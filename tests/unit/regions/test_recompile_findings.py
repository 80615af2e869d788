"""How severe it is that a region was captured again."""

from __future__ import annotations

import torch

import magpy_core
from magpy_core.findings import Finding
from magpy_core.regions.api import region_of


class Holder:
    def __init__(self) -> None:
        self.mode, self.cache = "a", None
        self.total: float = 0


def captured_again(changes: list[tuple[str, object]]) -> list[Finding]:
    """What is reported of a region whose object changes so between calls."""
    holder = Holder()

    def region(x: torch.Tensor) -> torch.Tensor:
        y = x * 2 if holder.mode == "a" else x * 3
        return y if holder.cache is None else y + 1

    compiled = magpy_core.compile(region, backend="eager")
    x = torch.ones(3)
    compiled(x)
    for name, value in changes:
        setattr(holder, name, value)
        for _ in range(2):
            assert torch.equal(compiled(x), region(x))
    return [finding for finding in region_of(compiled).findings.values() if finding.code == "MP201"]


def test_the_second_capture_is_a_fact() -> None:
    (finding,) = captured_again([("mode", "b")])
    assert not finding.is_actionable


def test_state_that_a_later_call_creates_is_a_fact() -> None:
    mode, state = captured_again([("mode", "b"), ("cache", torch.ones(1))])
    assert not mode.is_actionable and not state.is_actionable
    assert state.hint.startswith("No action needed for state")


def test_other_values_that_go_on_changing_are_not() -> None:
    findings = captured_again([("mode", "b"), ("mode", "c")])
    assert [finding.is_actionable for finding in findings] == [False, True]
    assert not findings[1].hint.startswith("No action")


def test_another_value_that_changes_once_is_a_fact() -> None:
    compiled = magpy_core.compile(lambda x, scale: x * 2 if scale == "a" else x * 3, backend="eager", dynamic=False)
    for size, scale in [(2, "a"), (2, "b"), (3, "b")]:
        compiled(torch.ones(size), scale)
    mode, shape = [finding for finding in region_of(compiled).findings.values() if finding.code == "MP201"]
    assert "x.shape" in shape.message and not mode.is_actionable and not shape.is_actionable
    compiled(torch.ones(4), "b")
    assert [f.is_actionable for f in region_of(compiled).findings.values() if f.code == "MP201"] == [False, False, True]


def test_state_that_is_made_and_dropped_is_not() -> None:
    findings = captured_again([("mode", "b"), ("cache", torch.ones(1)), ("cache", None), ("cache", [1]), ("cache", None)])
    state = [finding for finding in findings if finding.values[0].name.endswith("cache")]
    assert [f.is_actionable for f in state] == [False, True]
    assert not state[1].hint.startswith("No action")


def test_a_comparison_of_sizes_has_two_outcomes_and_is_a_fact() -> None:
    def region(x: torch.Tensor) -> torch.Tensor:
        return x * 2 if x.shape[0] < 6 else x * 3

    compiled = magpy_core.compile(region, backend="eager")
    for size in (2, 3, 4, 7, 8):
        assert torch.equal(compiled(torch.ones(size)), region(torch.ones(size)))
    (finding,) = [f for f in region_of(compiled).findings.values() if f.code == "MP201"]
    assert "changed from True to False" in finding.message and not finding.is_actionable


def test_a_sum_that_begins_as_an_int_is_to_begin_as_a_float() -> None:
    holder = Holder()

    def region(x: torch.Tensor) -> torch.Tensor:
        return (x if holder.mode == "a" else x * 2) + holder.total

    compiled = magpy_core.compile(region, backend="eager")
    for mode, total in [("a", 0), ("b", 0), ("b", 0.5), ("b", 0.75)]:
        holder.mode, holder.total = mode, total
        assert torch.equal(compiled(torch.ones(2)), region(torch.ones(2)))
    (finding,) = [f for f in region_of(compiled).findings.values() if "total" in f.message and f.code == "MP201"]
    assert "from 0 to 0.5" in finding.message and "`0.0` instead of `0`" in finding.hint and finding.is_actionable
