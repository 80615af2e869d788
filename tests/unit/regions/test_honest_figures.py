"""No figures contradict what a clock shows: no slowness that is none, no cost above the step's time, no uncertain gain."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from magpy_core.findings import STEP_KINDS, Finding, Location, Position, Range
from magpy_core.regions.reports.cost_share import relate
from magpy_core.regions.reports.performance import _Compared, _slower
from magpy_core.regions.reports.step_report import step_report
from magpy_core.regions.timing.passes import Passes, Sums
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


def test_the_parts_of_a_step_add_up_to_it() -> None:
    """What is compiled in place of a region is listed, and the region is not; nor is what was timed in other steps."""

    def region(name: str, seconds: float, *, cut: bool = False, kind: str = "module", given_up: str = "") -> Any:
        passes = Passes()
        passes.plain, passes.compiled = [Sums(seconds, 0.0)] * 9, [Sums(seconds / 2, 0.0)] * 9
        times = SimpleNamespace(
            passes=passes, has_history=True, tally=SimpleNamespace(given_up=given_up), retired=(),
            calls=SimpleNamespace(eager=[], compiled=[]),
        )  # fmt: skip
        return SimpleNamespace(id=name, name=name, kind=kind, is_cut=cut, times=times, captures=[])

    regions = [
        region("net", 0.9, cut=True),
        region("net:8", 0.3, kind="stretch"),
        region("net:9", 0.4, kind="stretch", given_up="replaced"),
        region("layer", 0.4),
        region("sometimes", 1.2),
        region("optimizer", 0.2, given_up="slower"),
    ]
    report = step_report(timed([1.0] * 40, [0.5] * 40), regions)
    shares = {part.name: part.plain_forward_ms for part in report.parts}
    assert shares == {"net:8": 300.0, "layer": 400.0, "optimizer": 200.0, "the rest": 100.0}
