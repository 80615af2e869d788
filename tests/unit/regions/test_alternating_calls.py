"""Whether compiled code pays: the turns of a AlternatingCalls, on a clock of the test's own."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable

import pytest

from magpy_core.regions.timing.alternating_calls import AlternatingCalls

_READY = (3, 2)


class Clock:
    """Calls that take ``plain`` or ``compiled`` seconds; each path takes longer by a factor."""

    def __init__(self, plain: float, compiled: float, history: bool = False) -> None:
        self.trial, self.now = AlternatingCalls(), 0.0
        self._plain, self._compiled, self._history = plain, compiled, history
        numbers = random.Random(4)
        self.path: Callable[[], float] = lambda: numbers.choice([1.0, 2.0, 4.0])
        self.were_compiled: list[bool] = []

    def call(self, state: object = _READY) -> bool:
        is_compiled = self.trial.begin(self.now, state)  # type: ignore[arg-type]
        self.now += (self._compiled if is_compiled else self._plain) * self.path()
        self.trial.returned(self.now, has_history=self._history)
        self.were_compiled.append(is_compiled)
        return is_compiled

    def calls(self, number: int) -> list[bool]:
        return [self.call() for _ in range(number)]


@pytest.mark.parametrize("compiled", [0.5, 2.0])
def test_it_ends_when_it_is_certain(compiled: float) -> None:
    clock = Clock(1.0, compiled)
    clock.calls(300)
    assert clock.trial.pays is (compiled < 1.0)
    assert set(clock.calls(20)) == {compiled < 1.0}
    turns = clock.were_compiled[10:50]
    assert 15 <= sum(turns) <= 25 and turns != [True, False] * 20, "in an order that no program has"


@pytest.mark.parametrize("compiled", [0.99, 1.01])
def test_if_it_never_is_it_is_decided_all_the_same(compiled: float) -> None:
    clock = Clock(1.0, compiled)
    clock.calls(100)
    assert clock.trial.pays is None
    clock.calls(400)
    assert clock.trial.pays is not None


@pytest.mark.parametrize("compiled", [0.9, 1.1])
def test_every_second_call_may_take_longer(compiled: float) -> None:
    clock = Clock(1.0, compiled)
    paths = itertools.cycle([1.0, 1.5])
    clock.path = lambda: next(paths)
    clock.calls(600)
    assert clock.trial.pays is (compiled < 1.0)


def test_turns_begin_when_everything_is_compiled_and_nothing_is_new() -> None:
    clock = Clock(1.0, 1.0)
    assert all(clock.call(None) for _ in range(150)), "code is compiled in the background"
    assert all(clock.call((i, 1)) for i in range(1)), "the first that is ready"
    clock = Clock(1.0, 1.0)
    assert all(clock.call((i, 1)) for i in range(98)), "something new in each call"
    assert not all(clock.call((i, 1)) for i in range(98, 140)), "it never ends"
    assert not all(Clock(1.0, 1.0).calls(20))


def test_the_backward_pass_counts() -> None:
    """Faster in the forward pass, and slower after it."""
    clock = Clock(1.0, 0.5, history=True)
    for _ in range(400):
        clock.now += 2.0 if clock.call() else 0.0
    assert clock.trial.pays is False


def test_calls_that_raise_are_not_timed() -> None:
    clock = Clock(1.0, 0.5)
    clock.calls(11)
    for i in range(400):
        if i % 3 == 0:
            clock.trial.begin(clock.now, _READY)
            clock.now += 100.0  # and it raises
        clock.call()
    assert clock.trial.pays is True
    assert len(clock.trial.compared.eager) == len(clock.trial.compared.compiled) and max(clock.trial.compared.eager) < 100.0
