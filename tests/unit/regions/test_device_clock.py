"""Times of code on a device: the clock waits for the device where calls and steps are timed, and nowhere else.

There is no device here: one stands in, whose work takes a time that only waiting shows.
"""

from __future__ import annotations

from typing import Any

import pytest
import torch

import magpy_core
from magpy_core.regions import trial as trials
from magpy_core.regions.api import region_of
from magpy_core.regions.timing import device_clock
from magpy_core.regions.timing.alternating_calls import AlternatingCalls
from magpy_core.regions.timing.steps import Steps


class Device:
    """``behind``: seconds of work that it has been given and not done yet; ``waits``: how often the host has waited."""

    def __init__(self) -> None:
        self.now = self.behind = 0.0
        self.waits = 0
        self.error: Exception | None = None

    def synchronize(self) -> None:
        self.waits += 1
        self.now, self.behind = self.now + self.behind, 0.0
        if self.error is not None:
            raise self.error


@pytest.fixture
def device(monkeypatch: pytest.MonkeyPatch) -> Device:
    made = Device()
    monkeypatch.setattr(device_clock, "accelerator_in_use", lambda: made)
    monkeypatch.setattr(device_clock, "perf_counter", lambda: made.now)
    return made


def test_the_time_is_that_of_the_device(device: Device) -> None:
    device.behind = 3.0
    assert device_clock.when_done() == 3.0 and device.waits == 1


def test_without_a_device_it_is_the_time() -> None:
    assert device_clock.accelerator_in_use() is None or torch.accelerator.is_available()
    assert device_clock.when_done() <= device_clock.when_done()


def test_it_does_not_wait_while_the_program_records_a_cuda_graph(device: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device_clock, "in_cuda_graph", lambda: True)
    device.behind = 3.0
    assert device_clock.when_done() == 0.0 and device.waits == 0


def test_an_error_of_the_programs_kernels_is_not_raised_by_the_clock(device: Device) -> None:
    device.error = RuntimeError("CUDA error: an illegal memory access was encountered")
    assert device_clock.when_done() == 0.0


def test_a_trial_times_what_the_device_does(device: Device) -> None:
    """Both ways return at once; compiled, the device has twice as much to do, so eager mode serves in the end."""

    def work(x: torch.Tensor) -> torch.Tensor:
        return x * 2 + 1

    def launches(seconds: float, call: Any) -> Any:
        def launched(*args: Any, **kwargs: Any) -> Any:
            device.behind += seconds
            return call(*args, **kwargs)

        return launched

    compiled = magpy_core.compile(work, backend="inductor", wait=False)
    region = region_of(compiled)
    trial = AlternatingCalls()
    ways = trials._Captures(region)
    ways.compiled = launches(2.0, lambda args, kwargs: work(*args))  # type: ignore[method-assign]
    ways.plain = launches(1.0, lambda args, kwargs: work(*args))  # type: ignore[method-assign]
    for _ in range(80):
        trials.call(ways, trial, (torch.ones(3),), {})
    assert trial.pays is False
    assert set(trial.compared.compiled) == {2.0} and set(trial.compared.eager) == {1.0}
    waits = device.waits
    trials.call(ways, trial, (torch.ones(3),), {})
    assert device.waits == waits, "it is known: nothing is timed"


def test_steps_wait_only_while_they_are_timed(device: Device) -> None:
    steps = Steps()
    for _ in range(3):
        device.behind = 1.0
        steps.stepped()
    assert device.waits == 0
    steps.turns.begin()
    for number in range(12):
        device.behind = 1.0 + number % 2
        steps.now.compiled, steps.now.plain = 1 - number % 2, number % 2
        steps.stepped()
    assert device.waits == 12
    assert set(steps.compared.compiled) == {1.0} and set(steps.compared.eager) == {2.0}
    steps.turns.end()
    steps.stepped()
    assert device.waits == 12
