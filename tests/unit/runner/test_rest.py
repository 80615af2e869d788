"""Short calls of which nothing comes are mostly not looked at, and are counted all the same."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from magpy_core.limits import LIMITS
from magpy_core.runner import rest
from magpy_core.runner.rest import Rest
from magpy_core.runner.steps import StepClock

NOW = [0.0]


@pytest.fixture(autouse=True)
def _clock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rest, "perf_counter", lambda: NOW[0])


class World:
    """A program whose calls go through ``call``, as those of modules do. ``looks``: how many were looked at."""

    def __init__(self, seconds: float, *, calm: bool = True, has_session: bool = True) -> None:
        self.seconds, self.calm = seconds, calm
        self.compiled_seconds = seconds
        self.wants_comparison = False
        self.comparisons: list[tuple[float, float]] = []
        self.clock = StepClock(0)
        self.rest = Rest(self.clock, lambda: self if has_session else None)
        self.looks = self.rested_steps = 0
        self.rates: list[float] = []

    def end_sample(self) -> bool:
        return self.calm

    def add_unobserved(self, steps: int, rate: float) -> None:
        self.rested_steps += steps
        self.rates.append(rate)

    def begin_window(self, watching: float) -> bool:
        assert LIMITS.discovery_served < watching
        return self.wants_comparison

    def compared(self, compiled: float, plain: float) -> None:
        self.comparisons.append((compiled, plain))

    def call(self, body: Callable[[], Any] = lambda: None) -> None:
        if self.rest.is_on:
            self.rest.call_module(self.run, (body,), {})
            return
        self.looks += 1
        NOW[0] += self.compiled_seconds - self.seconds
        self.run(body)
        self.rest.looked_at()
        self.clock.module_called()

    def run(self, body: Callable[[], Any]) -> None:
        NOW[0] += self.seconds
        body()


@pytest.mark.parametrize("number", [10, 64, 65, 200, 5000, 20011])
def test_short_calls_are_counted_whether_they_were_looked_at_or_not(number: int) -> None:
    world = World(1e-4)
    for _ in range(number):
        world.call()
    world.rest.end()
    assert sum(world.rates) == world.rested_steps / 64
    assert world.looks + world.rested_steps == number == world.clock.count
    assert world.looks <= 64 * (1 + number / (64 * 100))


def test_looking_takes_a_small_part_of_the_time() -> None:
    world = World(1e-5)
    for _ in range(200_000):
        world.call()
    assert world.looks * LIMITS.discovery_cost < 0.02 * 200_000 * (1e-5 + LIMITS.discovery_cost)


_SHORT = LIMITS.discovery_cost / LIMITS.discovery_share


@pytest.mark.parametrize("seconds", [4e-4, 4e-3, 0.8 * _SHORT])
def test_there_is_a_look_at_least_once_a_second(seconds: float) -> None:
    world = World(seconds)
    for _ in range(64):
        world.call()
    assert 0.9 <= world.rest.left * seconds <= 1.0


@pytest.mark.parametrize(
    "given", [{"seconds": 1.2 * _SHORT}, {"seconds": 1e-4, "calm": False}, {"seconds": 1e-4, "has_session": False}]
)
def test_long_calls_and_those_of_which_something_comes_are_looked_at(given: dict[str, Any]) -> None:
    world = World(**given)
    for _ in range(1000):
        world.call()
    assert world.looks == 1000


def test_what_a_call_calls_is_a_part_of_it_even_if_it_is_the_last_one() -> None:
    world = World(1e-4)
    outer = 0
    while world.looks < 65:
        rests = world.rest.is_on
        outer += rests
        world.call(world.call if rests else lambda: None)
    assert world.rested_steps == outer > 1000, "not those inside"


def test_a_step_of_an_optimizer_that_wraps_another_one_is_one_step() -> None:
    world = World(1e-4)
    world.clock.has_optimizer = True
    for _ in range(64):
        world.call()
    for _ in range(10):
        world.rest.step(lambda: world.rest.step(lambda: None, (), {}), (), {})
    world.rest.end()
    assert world.rested_steps == world.clock.count == 10


def test_an_exception_ends_the_call() -> None:
    world = World(1e-4)
    for _ in range(64):
        world.call()
    with pytest.raises(ZeroDivisionError):
        world.call(lambda: 1 / 0)
    assert not world.rest.inside and world.rest.left > 0


def test_where_compiled_code_serves_windows_of_plain_calls_are_timed_beside_those_with_it() -> None:
    world = World(1e-4, calm=False)
    world.compiled_seconds, world.wants_comparison = 3e-4, True
    for _ in range(64 + 5 * 129):
        world.call()
    assert world.comparisons == [(pytest.approx(3e-4, rel=0.02), pytest.approx(1e-4))] * 5
    assert world.rested_steps == 5 * 64 and world.clock.count == 64 + 5 * 129


def test_steps_of_two_calls_each_are_compared_with_those_that_are_one_call() -> None:
    """What is two regions where it is looked at, such as a loop's body and the model in it, is one call where nothing is."""
    world = World(1e-3, calm=False)
    world.wants_comparison = world.clock.has_optimizer = True
    for _ in range(32 + 2 * 64 + 40):
        if world.rest.is_on:
            world.call(lambda: world.rest.step(lambda: None, (), {}))
        else:
            world.rest.looked_at()
            world.call(world.clock.optimizer_stepped)
    assert world.comparisons[0] == (pytest.approx(1e-3, rel=0.04), pytest.approx(1e-3))


def test_a_comparison_that_the_program_ends_before_is_none() -> None:
    world = World(1e-4, calm=False)
    world.wants_comparison = True
    for _ in range(100):
        world.call()
    world.rest.end()
    assert world.comparisons == [] and world.clock.count == 100


def test_long_calls_are_not_compared() -> None:
    world = World(3e-3, calm=False)
    world.wants_comparison = True
    for _ in range(1000):
        world.call()
    assert world.looks == 1000
