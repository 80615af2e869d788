"""Calls that nothing has looked at are taken to be like those that were looked at before."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from magpy_core.findings import Finding, Location, Position, Range
from magpy_core.regions.log import StepCounts
from magpy_core.regions.policy.sampling import CallSample
from magpy_core.regions.timing.steps import Steps
from magpy_core.regions.timing.tally import Tally


class Capture:
    def __init__(self) -> None:
        self.plain = (0, 0.0)

    def ran_plain(self, seconds: float, calls: int = 1) -> None:
        self.plain = (self.plain[0] + calls, self.plain[1] + seconds)


def region(name: str, capture: Capture | None = None, *, disabled: str = "") -> Any:
    policy = SimpleNamespace(backoff=SimpleNamespace(awaited=lambda: capture))
    log = SimpleNamespace(counts=StepCounts())
    captures = [] if capture is None else [capture]
    return SimpleNamespace(
        id=name,
        hits=0,
        recordings=1,
        calls=0,
        captures=captures,
        policy=policy,
        log=log,
        disabled=disabled,
        times=SimpleNamespace(tally=Tally()),
    )


def run(steps: Steps, regions: list[Any], number: int) -> None:
    """``number`` steps, in each of which the n-th region is called n + 1 times."""
    for _ in range(number):
        for n, one in enumerate(regions):
            one.calls += n + 1
            for capture in one.captures:
                capture.ran_plain(0.5)
            one.log.counts.stepped(one.calls, plain=bool(one.disabled))
        steps.stepped()


def test_calls_are_as_many_as_in_the_steps_before() -> None:
    steps, capture = Steps(), Capture()
    regions = [region("a", capture), region("b", disabled="refused"), region("c")]
    finding = Finding("MP103", "", Location("a.py", Range(Position(1, 0), Position(1, 1))))
    regions[1].log.counts.holds(None, [finding])
    run(steps, regions[:2], 10)
    before = CallSample(regions, steps)
    run(steps, regions[:2], 20)
    now = CallSample(regions, steps)
    assert now.all_eager_since(before)
    steps.add_unobserved(200)
    now.add(regions, before, 200, 1.0)
    assert [one.calls for one in regions] == [230, 460, 0]
    assert capture.plain == (230, 115.0)
    assert finding.steps == 230
    assert steps.count == steps.plain_count == 230
    run(steps, regions[:2], 1)
    assert finding.steps == 231 and steps.count == 231


def test_calls_in_no_step_are_counted_by_their_rate() -> None:
    steps, one = Steps(), region("a")
    before = CallSample([one], steps)
    one.calls += 64
    CallSample([one], steps).add([one], before, 0, 2.5)
    assert one.calls == 64 + 160 and steps.count == 0


def test_what_was_recorded_or_served_is_not_calm() -> None:
    steps, one = Steps(), region("a")
    before = CallSample([one], steps)
    one.hits += 1
    assert not CallSample([one], steps).all_eager_since(before)
    before = CallSample([one], steps)
    one.recordings += 1
    assert not CallSample([one], steps).all_eager_since(before)
    assert not CallSample([one, region("new")], steps).all_eager_since(before)
