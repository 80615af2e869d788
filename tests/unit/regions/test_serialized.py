"""Calls of several threads: all are made, one at a time, and no thread waits."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator

import pytest

from magpy_core.regions.serialized import InTurn


@pytest.fixture
def quick_switches() -> Iterator[None]:
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(interval)


def test_a_call_is_made_at_once() -> None:
    made: list[int] = []
    in_turn = InTurn()
    in_turn(lambda: made.append(1))
    assert made == [1]


def test_a_call_inside_of_a_call_is_made_after_it() -> None:
    made: list[str] = []
    in_turn = InTurn()

    def outer() -> None:
        in_turn(lambda: made.append("inner"))
        made.append("outer")

    in_turn(outer)
    assert made == ["outer", "inner"]


def test_no_thread_waits_for_another() -> None:
    made: list[str] = []
    in_turn, started, goes_on = InTurn(), threading.Event(), threading.Event()

    def long() -> None:
        started.set()
        assert goes_on.wait(60)
        made.append("long")

    thread = threading.Thread(target=lambda: in_turn(long))
    thread.start()
    assert started.wait(60)
    in_turn(lambda: made.append("short"))  # returns, although the long one has not ended
    assert made == []
    goes_on.set()
    thread.join()
    assert made == ["long", "short"]


@pytest.mark.usefixtures("quick_switches")
def test_no_call_is_lost_or_made_beside_another() -> None:
    in_turn = InTurn()
    running: list[int] = []
    beside: list[int] = []
    count = 0

    def call() -> None:
        nonlocal count
        running.append(1)
        beside.append(len(running))
        count = count + 1
        running.pop()

    def work() -> None:
        for _ in range(2000):
            in_turn(call)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert count == 8000 and set(beside) == {1}


def test_a_call_that_raises_keeps_none_from_being_made() -> None:
    made: list[str] = []
    in_turn = InTurn()

    def fails() -> None:
        in_turn(lambda: made.append("inner"))
        raise ValueError

    with pytest.raises(ValueError):
        in_turn(fails)
    in_turn(lambda: made.append("next"))
    assert made == ["inner", "next"]
