"""Other threads, while regions are recorded and replayed: nothing that any thread has written is lost.

What is compared holds in eager mode whatever the order in which the threads run.
"""

from __future__ import annotations

import itertools
import queue
import sys
import threading
import time
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
import torch

import magpy_core
from magpy_core.regions.api import region_of

THREADS, CALLS = 4, 100


@pytest.fixture(autouse=True)
def quick_switches() -> Iterator[None]:
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(interval)


def in_threads(work: Callable[[], None]) -> None:
    """Run ``work`` in each of THREADS threads; raises what any of them raised."""
    errors: list[BaseException] = []
    ready = threading.Barrier(THREADS)

    def run() -> None:
        ready.wait()
        try:
            work()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run) for _ in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


# -- the same region in several threads --------------------------------------------------------------------------------


class OwnLock:
    """A lock of the program's that counts how often it was taken."""

    def __init__(self) -> None:
        self.inner, self.taken = threading.Lock(), 0

    def __enter__(self) -> None:
        self.inner.acquire()
        self.taken += 1

    def __exit__(self, *error: object) -> None:
        self.inner.release()


@dataclass
class Shared:
    lock: Any = field(default_factory=threading.Lock)
    count: int = 0
    counts: dict[str, int] = field(default_factory=lambda: {"calls": 0})
    log: list[int] = field(default_factory=list)
    kept: set[int] = field(default_factory=set)
    last: deque[int] = field(default_factory=lambda: deque(maxlen=50))
    numbers: Iterator[int] = field(default_factory=itertools.count)
    tensors: list[torch.Tensor] = field(default_factory=list)
    free: queue.Queue[int] = field(default_factory=queue.Queue)


def under_a_lock(s: Shared, x: torch.Tensor) -> torch.Tensor:
    with s.lock:
        s.count += 1
        s.counts["calls"] += 1
    return x * 2


def with_try_and_finally(s: Shared, x: torch.Tensor) -> torch.Tensor:
    s.lock.acquire()
    try:
        s.count += 1
        s.counts["calls"] = s.counts["calls"] + 1
    finally:
        s.lock.release()
    return x * 2


def by_one_operation(s: Shared, x: torch.Tensor) -> torch.Tensor:
    s.log.append(1)
    s.last.append(2)
    return x * 2


def by_a_native_counter(s: Shared, x: torch.Tensor) -> torch.Tensor:
    s.kept.add(next(s.numbers))
    return x * 2


def keeps_tensors(s: Shared, x: torch.Tensor) -> torch.Tensor:
    y = x * 2
    s.tensors.append(y.detach())
    return y


def through_a_queue(s: Shared, x: torch.Tensor) -> torch.Tensor:
    s.free.put(1)
    return x * 2


def exact(s: Shared) -> None:
    assert s.count == s.counts["calls"] == THREADS * CALLS


def all_there(s: Shared) -> None:
    assert len(s.log) == THREADS * CALLS and len(s.last) == 50


def no_number_twice(s: Shared) -> None:
    assert s.kept == set(range(THREADS * CALLS))


def each_its_own(s: Shared) -> None:
    assert len({id(t) for t in s.tensors}) == THREADS * CALLS


def all_put(s: Shared) -> None:
    assert s.free.qsize() == THREADS * CALLS


LOCKS: list[Callable[[], Any]] = [threading.Lock, threading.RLock, threading.Semaphore, threading.Condition, OwnLock]
CASES: list[tuple[Any, Any, Any]] = [
    *((under_a_lock, make, exact) for make in LOCKS),
    *((with_try_and_finally, make, exact) for make in LOCKS[:4]),
    (by_one_operation, threading.Lock, all_there), (by_a_native_counter, threading.Lock, no_number_twice),
    (keeps_tensors, threading.Lock, each_its_own), (through_a_queue, threading.Lock, all_put),
]  # fmt: skip


@pytest.mark.parametrize(("region", "lock", "check"), CASES)
def test_a_region_in_several_threads(region: Any, lock: Any, check: Callable[[Shared], None]) -> None:
    s = Shared(lock())
    compiled = magpy_core.compile(region, backend="eager")

    def work() -> None:
        for i in range(CALLS):
            assert compiled(s, torch.full((2,), i)).tolist() == [2 * i, 2 * i]

    in_threads(work)
    check(s)


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_buffers_that_several_threads_count_in(backend: str) -> None:
    net = torch.nn.BatchNorm1d(4)
    compiled = magpy_core.compile(net, backend=backend)
    with torch.no_grad():
        for _ in range(4):
            compiled(torch.randn(8, 4))

    def work() -> None:
        with torch.no_grad():
            for _ in range(CALLS):
                compiled(torch.randn(8, 4))

    in_threads(work)
    assert int(net.num_batches_tracked) == 4 + THREADS * CALLS  # type: ignore[arg-type]


# -- another thread beside the one that records and replays --------------------------------------------------------------


@dataclass
class World:
    """What a region and another thread reach. Each writes to slots of its own, or by one operation."""

    calls: int = 0
    steps: int = 0
    counts: dict[str, int] = field(default_factory=lambda: {"calls": 0, "steps": 0})
    tally: Counter[str] = field(default_factory=Counter)
    groups: dict[str, list[int]] = field(default_factory=lambda: defaultdict(list))
    log: list[str] = field(default_factory=list)
    recent: deque[str] = field(default_factory=deque)
    names: set[str] = field(default_factory=set)
    numbers: list[int] = field(default_factory=lambda: [0, 0])


def _write(w: World, who: str, slot: int, n: int) -> None:
    w.counts[who] += 1
    w.tally[who] += 1
    w.groups[who].append(n)
    w.log.append(who)
    w.recent.append(who)
    w.names.add(f"{who} {n}")
    w.numbers[slot] += 1


def steps(w: World, n: int) -> None:
    w.steps += 1
    _write(w, "steps", 1, n)


def all_at_once(w: World, x: torch.Tensor) -> torch.Tensor:
    w.calls += 1
    _write(w, "calls", 0, w.calls)
    return x * 2


def counts_attribute(w: World, x: torch.Tensor) -> torch.Tensor:
    w.calls += 1
    return x * 2


def counts_entry(w: World, x: torch.Tensor) -> torch.Tensor:
    w.counts["calls"] += 1
    return x * 2


def counts_item(w: World, x: torch.Tensor) -> torch.Tensor:
    w.numbers[0] += 1
    return x * 2


def logs(w: World, x: torch.Tensor) -> torch.Tensor:
    w.log.append("calls")
    y = x * 2
    w.log.append("calls")
    return y


def removes_and_sets(w: World, x: torch.Tensor) -> torch.Tensor:
    w.counts["mine"] = 1
    del w.counts["mine"]
    return x * 2


OWN: dict[Any, Callable[[World], tuple[int, int]]] = {
    all_at_once: lambda w: (w.calls, w.counts["calls"] + w.tally["calls"] + w.numbers[0] + len(w.groups["calls"])
                            + w.log.count("calls") + w.recent.count("calls") - 5 * w.calls),
    counts_attribute: lambda w: (w.calls, w.calls), counts_entry: lambda w: (w.counts["calls"],) * 2,
    counts_item: lambda w: (w.numbers[0],) * 2, logs: lambda w: (w.log.count("calls") // 2,) * 2,
    removes_and_sets: lambda w: (60, 60 + ("mine" in w.counts)),
}  # fmt: skip


@pytest.mark.parametrize("region", list(OWN), ids=lambda fn: fn.__name__)
@pytest.mark.parametrize("forget", [False, True])
def test_another_thread_writes_meanwhile(region: Any, forget: bool) -> None:
    w = World()
    compiled = magpy_core.compile(region, backend="eager")
    stop, begun = threading.Event(), threading.Event()
    done = 0

    def work() -> None:
        nonlocal done
        while not stop.is_set():
            done += 1
            steps(w, done)
            begun.set()
            time.sleep(1e-5)  # lets the other thread go on

    thread = threading.Thread(target=work)
    thread.start()
    try:
        begun.wait()
        for i in range(60):
            assert compiled(w, torch.ones(2)).tolist() == [2.0, 2.0]
            if forget and i % 4 == 3:
                magpy_core.reset()
    finally:
        stop.set()
        thread.join()
    assert OWN[region](w) == (60, 60)
    theirs = (w.steps, w.counts["steps"], w.tally["steps"], w.numbers[1], len(w.groups["steps"]))
    assert theirs == (done,) * 5
    assert (w.log.count("steps"), w.recent.count("steps")) == (done, done)
    assert {n for n in w.names if n.startswith("steps")} == {f"steps {n}" for n in range(1, done + 1)}


def test_what_another_thread_writes_between_guard_and_commit_is_not_lost() -> None:
    """The graph of the call lets another thread run: it finds the counter as it was at the guard."""
    w = World()
    at_graph, written = threading.Event(), threading.Event()
    waits = False

    @torch.library.custom_op("magpy_tests::lets_others_run", mutates_args=())
    def lets_others_run(x: torch.Tensor) -> torch.Tensor:
        if waits:
            at_graph.set()
            written.wait()
        return x * 2

    def region(w: World, x: torch.Tensor) -> torch.Tensor:
        w.calls += 1
        return lets_others_run(x)

    compiled = magpy_core.compile(region, backend="eager")
    for _ in range(4):
        compiled(w, torch.ones(2))
    hits = region_of(compiled).hits
    assert hits and w.calls == 4

    def work() -> None:
        nonlocal waits
        at_graph.wait()
        w.calls += 100
        waits = False
        written.set()

    thread = threading.Thread(target=work)
    waits = True
    thread.start()
    assert compiled(w, torch.ones(2)).tolist() == [2.0, 2.0]
    thread.join()
    assert w.calls == 105


def test_an_idle_thread_costs_no_capture() -> None:
    """Not even where no event tells which values are written."""
    w, end, ready = World(), threading.Event(), threading.Event()

    def work() -> None:
        ready.set()
        end.wait()

    def region(w: World, x: torch.Tensor) -> torch.Tensor:
        w.counts.update(calls=1)
        return x * 2

    thread = threading.Thread(target=work)
    thread.start()
    ready.wait()
    compiled = magpy_core.compile(region, backend="eager")
    for _ in range(6):
        compiled(w, torch.ones(2))
    end.set()
    thread.join()
    assert region_of(compiled).hits and w.counts["calls"] == 1


class Counting(torch.nn.Module):
    """Writes a buffer by name, which the class keeps in a table of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("steps", torch.zeros(1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.steps += 1
        return x * self.steps


def test_a_thread_that_only_runs_does_not_hold_up_a_capture() -> None:
    """A progress bar's, for instance: every change is known to be the region's own."""
    module = magpy_core.compile(Counting(), backend="eager")
    over = threading.Event()

    def spin() -> None:
        while not over.is_set():
            sum(range(1000))

    thread = threading.Thread(target=spin)
    thread.start()
    try:
        for number in range(1, 6):
            assert module(torch.ones(1)).item() == number
    finally:
        over.set()
        thread.join()
    assert region_of(module).hits == 4
