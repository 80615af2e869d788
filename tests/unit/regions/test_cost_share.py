"""Findings against the measured step: what the region of a warning takes of it, in a check and in a compiled run."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch

from magpy_core.findings import Finding, Severity
from magpy_core.limits import LIMITS
from magpy_core.regions.policy import policy
from magpy_core.regions.session import Session


class Clock:
    """Seconds pass only where the test says so."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 0.0
        for module in ("steps", "region_times", "passes"):
            monkeypatch.setattr(f"magpy_core.regions.timing.{module}.when_done", lambda: self.now)
        monkeypatch.setattr("magpy_core.regions.timing.steps.perf_counter", lambda: self.now)
        monkeypatch.setattr(policy, "LIMITS", replace(LIMITS, calls_before_cut=1000))  # refused regions stay whole


def _train(
    session: Session, clock: Clock, read: Callable[[], float], called: Callable[[int], bool], *, whole: bool = True
) -> list[Finding]:
    """Steps of 10 s, of which the region takes 3 s forward and 2 s backward; and of 5 s, if they do not call it."""

    def backward(grad: torch.Tensor) -> torch.Tensor:
        clock.now += 2
        return grad

    def target(x: torch.Tensor) -> torch.Tensor:
        y = x * 2 * read()
        clock.now += 3
        return y

    region = session.region(1, kind="function", name="r", file=__file__, line=1, target=target)
    for step in range(1, 13):
        clock.now += 5
        if called(step):
            x = torch.ones(3, requires_grad=True)
            x.register_hook(backward)
            region(x).sum().backward()
        session.stepped(step, whole=whole)
    session.finish()
    return [finding for finding in session.findings if finding.severity is Severity.WARNING]


@pytest.mark.parametrize("mode", ["observe", "compiled"])
def test_a_refused_region_takes_a_part_of_the_step(mode: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[Finding] = []
    session = Session(mode=mode, backend="eager", measure=mode == "compiled", on_finding=told.append)
    (clock,) = _train(session, Clock(monkeypatch), time.time, lambda step: True)
    assert (clock.code, clock.cost_ms) == ("MP103", None)
    assert (clock.at_most_ms, clock.step_ms) == (5_000.0, 10_000.0)
    assert told[-1] is clock, "told again with it"


def test_steps_that_do_not_call_the_region_count() -> None:
    with pytest.MonkeyPatch.context() as patch:
        session = Session(mode="observe", backend="eager")
        (clock,) = _train(session, Clock(patch), time.time, lambda step: step == 1 or step > 4)
    # the first two calls are recorded, because the first may only set up what later ones find: steps 1 and 5 do not count
    assert clock.at_most_ms == 5_000 * 7 / 10 and clock.step_ms == 10_000.0


@pytest.mark.parametrize(("called", "whole"), [(1, True), (5, True), (12, False)])
def test_what_was_not_measured_is_not_said(called: int, whole: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    session = Session(mode="observe", backend="eager")
    (clock,) = _train(session, Clock(monkeypatch), time.time, lambda step: step <= called, whole=whole)
    assert (clock.at_most_ms, clock.step_ms) == (None, None)


def test_a_step_that_records_is_not_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    session = Session(mode="observe", backend="eager")
    found = _train(session, Clock(monkeypatch), lambda: 1.0, lambda step: True)
    assert found == []
    assert session._steps.compared.eager == [10.0] * 11, "the first one records"
