"""The processor time of other threads tells whether they have run."""

from __future__ import annotations

import _thread
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from magpy_core._compat.cpython import threads
from magpy_core._compat.cpython.threads import leave_out_running, processor_times


@contextmanager
def waiting(start: str) -> Iterator[tuple[threading.Event, threading.Event]]:
    """A thread that runs when told to; it gives the event that tells it to, and the one that says that it has."""
    go, done, ended, started = threading.Event(), threading.Event(), threading.Event(), threading.Event()
    others = len(processor_times() or ())

    def work() -> None:
        started.set()
        while not go.wait():
            pass
        done.set()
        ended.wait()

    if start == "threading":
        threading.Thread(target=work, daemon=True).start()
    else:
        _thread.start_new_thread(work, ())
    started.wait()
    try:
        yield go, done
    finally:
        go.set()
        ended.set()
        while len(processor_times() or ()) > others:  # a thread of `_thread` cannot be joined
            pass


def settled() -> dict[int, int] | None:
    """The times, once no other thread runs any more."""
    times = processor_times()
    while (now := processor_times()) != times:
        times = now
    return times


@pytest.mark.parametrize("start", ["threading", "_thread"])
def test_a_thread_that_waits_has_not_run_and_one_that_works_has(start: str) -> None:
    alone = settled()
    assert alone is not None
    with waiting(start) as (go, done):
        before = settled()
        assert before is not None and len(before) == len(alone) + 1
        assert processor_times() == before
        go.set()
        done.wait()
        assert processor_times() != before


def test_a_thread_that_is_left_out_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "_left_out", set(threads._left_out))
    with waiting("threading") as (go, done):
        leave_out_running()
        assert processor_times() == {}
        go.set()
        done.wait()
        assert processor_times() == {}
        with waiting("_thread"):
            assert len(processor_times() or ()) == 1
