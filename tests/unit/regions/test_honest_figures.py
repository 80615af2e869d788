"""No figures contradict what a clock shows: no slowness that is none, no cost above the step's time, no uncertain gain."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from magpy_core.findings import STEP_KINDS, Finding, Location, Position, Range
from magpy_core.regions.reports.cost_share import relate
from magpy_core.regions.reports.performance import _Compared, _slower
from magpy_core.regions.reports.step_report import step_report
from magpy_core.regions.timing.steps import Steps

AT = Location("/p/net.py", Range(Position(0, 0), Position(0, 1)))
REGION: Any = SimpleNamespace(id="r", location=AT)


def timed(plain: list[float], compiled: list[float]) -> Steps:
    steps = Steps()
    steps.compared.eager, steps.compared.compiled, steps.are_whole = plain, compiled, True
    steps.kinds = bytearray([STEP_KINDS.index("compiled")] * 100)
    return steps


@pytest.mark.parametrize(("compiled", "says"), [(1.2, "is 1.2x slower than"), (1.01, "is not faster than")])
def test_what_is_no_slower_is_not_said_to_be(compiled: float, says: str) -> None:
    found = _slower(REGION, _Compared("A compiled call of net", 1.0, compiled, 10, 1.0), retired=True)
    assert f"A compiled call of net {says} eager mode (" in found.message
    assert " 1 times" not in found.message


def test_a_part_of_a_step_costs_no_more_than_the_step() -> None:
    finding = Finding("MP406", "m", AT, cost_ms=9000.0)
    assert list(relate([], [finding], timed([1.0] * 20, [0.5] * 20))) == [finding]
    assert (finding.cost_ms, finding.step_ms) == (500.0, 500.0)


@pytest.mark.parametrize(
    ("plain", "compiled", "verdict", "saves"),
    [
        ([1.0] * 40, [0.5] * 40, "faster", True),
        ([0.5, 1.5] * 20, [1.4, 0.4] * 20, "unclear", False),
        ([1.0] * 40, [2.0] * 40, "slower", False),
    ],
)
def test_only_a_certain_difference_saves_time(plain: list[float], compiled: list[float], verdict: str, saves: bool) -> None:
    steps = timed(plain, compiled)
    steps.waited = [(1, 3.0)]
    report = step_report(steps, [])
    assert report.verdict == verdict and report.saved_s is not None
    assert (report.saved_s > 0) is saves and (report.shown_speedup is None) is (verdict == "unclear")
    if verdict == "unclear":
        assert report.saved_s == -3.0 and report.break_even is None, "what it waited is lost for certain"
