"""Threads: what several do to one shared state, in regions and beside them, where the end does not depend on their order.

A plan has an entry for each thread: what it does at every call, and whether a region of all threads, one of its own or eager
mode does it. The state at the end must be the one that the same work leaves when eager mode does it in one thread.
``python -m tests.soundness.generators.threads "shared: append, count under a lock" "beside: own entry"`` tries a plan many
times. Key types: Shared; key functions: together, drawn.
"""

from __future__ import annotations

import collections
import contextvars
import itertools
import queue
import random
import shlex
import sys
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import nn

import magpy_core
from tests.soundness.harness.batch import shortest

CALLS = 30
TRIES = 5  # of a plan that differed: what threads do is another thing every time
WAYS = ("shared", "shared", "own", "module", "beside", "forgetting")


class Shared:
    """What all threads reach."""

    def __init__(self) -> None:
        self.lock, self.again = threading.Lock(), threading.RLock()
        self.some, self.told = threading.Semaphore(2), threading.Condition()
        self.count = self.reentered = self.notified = 0
        self.counts: dict[str, int] = {"all": 0}
        self.groups: dict[Any, list[int]] = collections.defaultdict(list)
        self.tally: collections.Counter[Any] = collections.Counter()
        self.log: list[Any] = []
        self.recent: collections.deque[Any] = collections.deque()
        self.popped: list[int] = []
        self.last: collections.deque[Any] = collections.deque(maxlen=10)
        self.names: set[Any] = set()
        self.numbers = itertools.count()
        self.drawn: set[int] = set()
        self.slots = [0] * 4
        self.free: queue.Queue[int] = queue.Queue()
        self.total = torch.zeros(2)
        self.parts = torch.zeros(4, 2)
        self.tensors: list[torch.Tensor] = []
        self.local = threading.local()
        self.var: contextvars.ContextVar[int] = contextvars.ContextVar("var", default=0)
        self.seen: dict[int, list[int]] = {i: [] for i in range(4)}
        self.net = nn.BatchNorm1d(2)
        self.objects = [type("Own", (), {"n": 0})() for _ in range(4)]

    def shown(self) -> dict[str, Any]:
        """The state, without the order in which it came to be."""
        return {
            "counts": (self.count, self.reentered, self.notified, sorted(self.counts.items())),
            "groups": sorted((k, sorted(v)) for k, v in self.groups.items()), "tally": sorted(self.tally.items()),
            "lists": (sorted(self.log), sorted(self.recent), len(self.last), self.popped), "names": sorted(self.names),
            "drawn": sorted(self.drawn), "slots": (self.slots, [o.n for o in self.objects]), "free": self.free.qsize(),
            "tensors": (self.total.tolist(), self.parts.tolist(), len({id(t) for t in self.tensors})),
            "each thread": self.seen, "batches": int(self.net.num_batches_tracked),  # type: ignore[arg-type]
            "locks": (self.lock.acquire(False), self.lock.release()),
        }  # fmt: skip


# -- operations: of the state, by thread i -------------------------------------------------------------------------------


def count_under_a_lock(s: Shared, i: int) -> None:
    with s.lock:
        s.count += 1


def count_in_try_and_finally(s: Shared, i: int) -> None:
    s.lock.acquire()
    try:
        s.count = s.count + 1
    finally:
        s.lock.release()


def count_in_a_lock_taken_twice(s: Shared, i: int) -> None:
    with s.again, s.again:
        s.reentered += 1


def count_under_a_condition(s: Shared, i: int) -> None:
    with s.told:
        s.notified += 1
        s.told.notify_all()


def entry_under_a_lock(s: Shared, i: int) -> None:
    with s.lock:
        s.counts["all"] = s.counts.get("all", 0) + 1


def tensor_under_a_lock(s: Shared, i: int) -> None:
    with s.lock:
        s.total += 1


def append_within_a_semaphore(s: Shared, i: int) -> None:
    with s.some:
        s.log.append(i)


def append(s: Shared, i: int) -> None:
    s.log.append(i)


def append_twice(s: Shared, i: int) -> None:
    s.recent.append(i)
    s.recent.appendleft(-i)


def append_to_a_full_deque(s: Shared, i: int) -> None:
    for n in range(10):
        s.last.append(n)


def append_and_pop(s: Shared, i: int) -> None:
    s.popped.append(1)
    s.popped.pop()
    s.popped.append(1)


def add_to_a_set(s: Shared, i: int) -> None:
    s.names.add(f"{i} {s.slots[i]}")


def draw_a_number(s: Shared, i: int) -> None:
    s.drawn.add(next(s.numbers))


def own_entry(s: Shared, i: int) -> None:
    s.counts[f"of {i}"] = s.counts.get(f"of {i}", 0) + 1


def own_entry_removed(s: Shared, i: int) -> None:
    s.counts[f"once {i}"] = 1
    del s.counts[f"once {i}"]


def own_group(s: Shared, i: int) -> None:
    s.groups[i].append(len(s.groups[i]))


def own_tally(s: Shared, i: int) -> None:
    s.tally[i] += 1
    s.tally.update({i: 2})


def own_slot(s: Shared, i: int) -> None:
    s.slots[i] += 1


def own_attribute(s: Shared, i: int) -> None:
    setattr(s, f"own_{i}", getattr(s, f"own_{i}", 0) + 1)
    s.seen[i].append(getattr(s, f"own_{i}"))


def own_object(s: Shared, i: int) -> None:
    s.objects[i].n += 1


def own_part_of_a_tensor(s: Shared, i: int) -> None:
    s.parts[i] += 1


def keep_a_tensor(s: Shared, i: int) -> None:
    s.tensors.append(torch.full((2,), float(i)))


def put_in_a_queue(s: Shared, i: int) -> None:
    s.free.put(i)


def put_and_get(s: Shared, i: int) -> None:
    s.free.put(i)
    s.free.put(i)
    s.free.get()


def local_of_the_thread(s: Shared, i: int) -> None:
    s.local.n = getattr(s.local, "n", 0) + 1
    s.seen[i].append(s.local.n)


def context_variable(s: Shared, i: int) -> None:
    s.var.set(s.var.get() + 1)
    s.seen[i].append(s.var.get())


def batches_under_a_lock(s: Shared, i: int) -> None:
    with s.lock, torch.no_grad():
        s.net(torch.arange(4.0).reshape(2, 2))


OPS: dict[str, Callable[[Shared, int], None]] = {
    op.__name__.replace("_", " "): op
    for op in (
        count_under_a_lock, count_in_try_and_finally, count_in_a_lock_taken_twice, count_under_a_condition,
        entry_under_a_lock, tensor_under_a_lock, append_within_a_semaphore, append, append_twice,
        append_to_a_full_deque, append_and_pop, add_to_a_set, draw_a_number, own_entry, own_entry_removed, own_group,
        own_tally, own_slot, own_attribute, own_object, own_part_of_a_tensor, keep_a_tensor, put_in_a_queue, put_and_get,
        local_of_the_thread, context_variable, batches_under_a_lock,
    )
}  # fmt: skip

Plan = tuple[str, ...]  # of each thread: "WAY: OPERATION, OPERATION"


# -- plans ---------------------------------------------------------------------------------------------------------------


def _parsed(entry: str) -> tuple[str, tuple[str, ...]]:
    way, _, ops = entry.partition(": ")
    return way, tuple(ops.split(", "))


class _Model(nn.Module):
    """A module that does the operations, compiled in place."""

    def forward(self, s: Shared, i: int, ops: Any, x: torch.Tensor) -> torch.Tensor:
        return region(s, i, ops, x)


def region(s: Shared, i: int, ops: Any, x: torch.Tensor) -> torch.Tensor:
    for op in ops:
        op(s, i)
    return x * 2 + i


def _functions(plan: Plan) -> list[Callable[..., Any]]:
    """What each thread calls."""
    shared: Any = magpy_core.compile(region, backend="eager")
    model: Any = magpy_core.compile(_Model(), backend="eager")
    made: dict[str, Callable[[], Any]] = {
        "shared": lambda: shared, "forgetting": lambda: shared, "module": lambda: model, "beside": lambda: region,
        "own": lambda: magpy_core.compile(region, backend="eager"),
    }  # fmt: skip
    return [made[_parsed(entry)[0]]() for entry in plan]


def _work(s: Shared, i: int, entry: str, function: Callable[..., Any]) -> None:
    way, names = _parsed(entry)
    ops = tuple(OPS[name] for name in names)
    for n in range(CALLS):
        result = function(s, i, ops, torch.full((2,), float(n)))
        if result.tolist() != [2.0 * n + i] * 2:
            raise AssertionError(f"thread {i}, call {n}: {result.tolist()}")
        if way == "forgetting" and n % 5 == 4:
            magpy_core.reset()
        if way == "beside":
            time.sleep(1e-5)  # lets the other threads go on


def _in_threads(jobs: Sequence[Callable[[], None]]) -> list[str]:
    """Run all at once; what they raised."""
    errors: list[str] = []
    ready = threading.Barrier(len(jobs))

    def one(job: Callable[[], None]) -> None:
        ready.wait()
        try:
            job()
        except Exception as error:
            errors.append(f"{type(error).__name__}: {error}")

    threads = [threading.Thread(target=one, args=(job,)) for job in jobs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return errors


def together(plan: Plan) -> str | None:
    """How the state at the end differs from the one that eager mode leaves, a thread after the other."""
    expected, got = Shared(), Shared()
    for i, entry in enumerate(plan):
        _in_threads([lambda i=i, entry=entry: _work(expected, i, entry, region)])  # type: ignore[misc]
    functions = _functions(plan)
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        errors = _in_threads([
            lambda i=i, entry=entry: _work(got, i, entry, functions[i]) for i, entry in enumerate(plan)  # type: ignore[misc]
        ])  # fmt: skip
    finally:
        sys.setswitchinterval(interval)
    want, have = expected.shown(), got.shown()
    lines = [*errors, *(f"{name}: {want[name]} expected, {have[name]} found" for name in want if want[name] != have[name])]
    return f"{' | '.join(plan)}: {'; '.join(line[:400] for line in lines)}" if lines else None


def drawn(rng: random.Random) -> Plan:
    """Two to four threads, at least one of them with a region, each with one to three operations."""
    ways = [rng.choice(WAYS[:4]), *rng.choices(WAYS, k=rng.randint(1, 3))]
    some = rng.sample(list(OPS), rng.randint(1, 3))
    chosen = [some if rng.random() < 0.6 else rng.sample(list(OPS), rng.randint(1, 3)) for _ in ways]
    return tuple(f"{way}: {', '.join(ops)}" for way, ops in zip(ways, chosen, strict=True))


def command(plan: Plan) -> str:
    return f"python -m tests.soundness.generators.threads {shlex.join(plan)}"


def repeated(plan: Plan) -> str | None:
    """The first difference in some tries."""
    return next((line for _ in range(TRIES) if (line := together(plan))), None)


def shortened(plan: Plan, line: str) -> str:
    """As few threads and operations as still differ now and then, as text."""
    plan = tuple(shortest(plan, lambda some: len(some) > 0 and repeated(tuple(some)) is not None))
    for number, entry in enumerate(plan):
        way, ops = _parsed(entry)

        def with_ops(some: Sequence[str], number: int = number, way: str = way, plan: Plan = plan) -> Plan:
            return (*plan[:number], f"{way}: {', '.join(some)}", *plan[number + 1 :])

        plan = with_ops(shortest(ops, lambda some: repeated(with_ops(some)) is not None))
    return f"{command(plan)}\n\n{repeated(plan) or line}"


def main(arguments: Sequence[str]) -> int:
    plan = tuple(arguments)
    for entry in plan:
        way, ops = _parsed(entry)
        if way not in WAYS or not set(ops) <= set(OPS):
            raise SystemExit(f"not of a plan: {entry!r}; ways {sorted(set(WAYS))}, operations {list(OPS)}")
    line = next((line for _ in range(10 * TRIES) if (line := together(plan))), None)
    print(line or "no difference")
    return 1 if line else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
