"""State of the process, of torch and of libraries that functions tell: guarded, and told as it is without a recording."""

from __future__ import annotations

import contextlib
import csv
import gc
import os
import queue
import reprlib
import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import torch
import torch.utils._pytree as pytree

import magpy_core

pytestmark = pytest.mark.filterwarnings("ignore")

ASKED: dict[str, tuple[Callable[[], Any], Callable[[int], Any]]] = {
    "recursion limit": (sys.getrecursionlimit, lambda i: sys.setrecursionlimit(3000 + i)),
    "switch interval": (sys.getswitchinterval, lambda i: sys.setswitchinterval(0.01 * (i + 1))),
    "collector": (gc.isenabled, lambda i: gc.disable() if i % 2 else gc.enable()),
    "collector's thresholds": (gc.get_threshold, lambda i: gc.set_threshold(700 + i, 10, 10)),
    "folder": (os.getcwd, lambda i: os.chdir("/" if i % 2 else os.path.expanduser("~"))),
    "text of an array": (lambda: str(np.ones(2) / 3), lambda i: np.set_printoptions(precision=2 + i)),
    "text of a number": (lambda: repr(np.float32(1 / 3)), lambda i: np.set_printoptions(legacy="1.13" if i % 2 else False)),
    "text of a tensor": (lambda: str(torch.ones(2) / 3), lambda i: torch.set_printoptions(precision=2 + i)),
    "short texts": (lambda: reprlib.repr(list(range(50))), lambda i: setattr(reprlib.aRepr, "maxlist", i)),
    "anomaly mode": (torch.is_anomaly_enabled, lambda i: torch.autograd.set_detect_anomaly(bool(i % 2))),
    "autocast dtype": (
        lambda: torch.get_autocast_dtype("cpu"),
        lambda i: torch.set_autocast_dtype("cpu", torch.float16 if i % 2 else torch.bfloat16),
    ),
    "autocast without a dtype": (
        lambda: _autocast_product().dtype,
        lambda i: torch.set_autocast_dtype("cpu", torch.float16 if i % 2 else torch.bfloat16),
    ),
    "warnings of torch": (torch.is_warn_always_enabled, lambda i: torch.set_warn_always(bool(i % 2))),
    "threads of backward": (
        lambda: torch._C._is_multithreading_enabled(),
        lambda i: torch.autograd.set_multithreading_enabled(bool(i % 2)),
    ),
    "view tracking": (torch._C._is_view_replay_enabled, lambda i: torch._C._set_view_replay_enabled(bool(i % 2))),
    "forward-mode": (torch._C._is_fwd_grad_enabled, lambda i: torch._C._set_fwd_grad_enabled(bool(i % 2))),
    "the JIT's optimiser": (
        torch._C._get_graph_executor_optimize,
        lambda i: torch._C._set_graph_executor_optimize(bool(i % 2)),
    ),
    "the JIT's inlining": (
        torch._C._jit_get_inline_everything_mode,
        lambda i: torch._C._jit_set_inline_everything_mode(bool(i % 2)),
    ),
    "profiler": (torch._C._autograd._profiler_enabled, lambda i: PROFILER.step(bool(i % 2))),
    "errors of NumPy": (np.geterr, lambda i: np.seterr(over="raise" if i % 2 else "warn")),
    "errors of NumPy, there": (lambda: _divided(), lambda i: np.seterr(divide="raise" if i % 2 else "ignore")),
    "fields of csv": (csv.field_size_limit, lambda i: csv.field_size_limit(1000 + i)),
    "dialects of csv": (csv.list_dialects, lambda i: csv.register_dialect(f"own{i}", delimiter="|")),
    "pytrees": (lambda: len(pytree.tree_leaves(Pair(1, 2))), lambda i: _register_pair(i)),
    "subclasses": (lambda: len(type.__subclasses__(Held)), lambda i: KEPT.append(type("Sub", (Held,), {}))),
}
KEPT: list[Any] = []


class Pair:
    def __init__(self, a: int, b: int) -> None:
        self.a, self.b = a, b


def _register_pair(call: int) -> None:
    pytree.SUPPORTED_NODES.pop(Pair, None)
    if call % 2:
        pytree._private_register_pytree_node(Pair, lambda p: ([p.a, p.b], None), lambda parts, _: Pair(*parts))


def _divided() -> str:
    try:
        return str(np.float64(1) / np.float64(0))
    except FloatingPointError as error:
        return str(error)


class Profiler:
    """Switched on and off between calls."""

    running: Any = None

    def step(self, on: bool) -> None:
        if self.running is not None:
            self.running.__exit__(None, None, None)
        self.running = torch.autograd.profiler.profile().__enter__() if on else None


PROFILER = Profiler()


def _autocast_product() -> torch.Tensor:
    with torch.autocast("cpu"):
        return torch.ones(2, 2) @ torch.ones(2, 2)


@contextlib.contextmanager
def kept() -> Iterator[None]:
    """The state that ``ASKED`` changes is put back at the end."""
    limit, interval, enabled = sys.getrecursionlimit(), sys.getswitchinterval(), gc.isenabled()
    thresholds, folder, options = gc.get_threshold(), os.getcwd(), np.get_printoptions()
    errors = np.geterr()
    longest, dtype = reprlib.aRepr.maxlist, torch.get_autocast_dtype("cpu")
    try:
        yield
    finally:
        sys.setrecursionlimit(limit)
        sys.setswitchinterval(interval)
        (gc.enable if enabled else gc.disable)()
        gc.set_threshold(*thresholds)
        os.chdir(folder)
        np.set_printoptions(**options)
        for name in csv.list_dialects():
            if name.startswith("own"):
                csv.unregister_dialect(name)
        if KEPT:
            KEPT.clear()
            gc.collect()  # a class is in a cycle
        torch.set_printoptions(profile="default")
        reprlib.aRepr.maxlist = longest
        torch.set_autocast_dtype("cpu", dtype)
        torch.autograd.set_detect_anomaly(False)
        torch.autograd.set_multithreading_enabled(True)
        torch.set_warn_always(False)
        torch._C._set_view_replay_enabled(False)
        torch._C._set_fwd_grad_enabled(True)
        torch._C._set_graph_executor_optimize(True)
        torch._C._jit_set_inline_everything_mode(False)
        PROFILER.step(False)
        np.seterr(**errors)
        csv.field_size_limit(131072)
        pytree.SUPPORTED_NODES.pop(Pair, None)


@pytest.fixture(autouse=True)
def put_back() -> Iterator[None]:
    with kept():
        yield


@pytest.mark.parametrize("what", ASKED)
def test_told_as_in_plain_python(what: str) -> None:
    ask, change = ASKED[what]
    compiled = magpy_core.compile(lambda x: (x * 2, ask()), backend="eager")
    for call in range(9):
        if call >= 3:
            change(call)
        assert compiled(torch.ones(2))[1] == ask(), f"call {call}"


class Held:
    v = 0

    def __len__(self) -> int:
        return int(self.v)


def _proxied() -> tuple[Held, Any]:
    held = Held()
    return held, weakref.proxy(held)


def _flipped(lock: Any) -> None:
    if lock.locked():
        lock.release()
    else:
        lock.acquire()


OBJECTS: dict[str, tuple[Callable[[], Any], Callable[[Any], Any], Callable[[Any, int], Any]]] = {
    "lock": (threading.Lock, lambda o: o.locked(), lambda o, i: _flipped(o)),
    "lock asked": (threading.Lock, lambda o: o.acquire(False) and (o.release() or 1), lambda o, i: _flipped(o)),
    "local of a thread": (threading.local, lambda o: getattr(o, "v", 0), lambda o, i: setattr(o, "v", i)),
    "weak proxy": (_proxied, lambda o: o[1].v, lambda o, i: setattr(o[0], "v", i)),
    "length of a weak proxy": (_proxied, lambda o: len(o[1]), lambda o, i: setattr(o[0], "v", i)),
    "weak proxy made": (Held, lambda o: weakref.proxy(o).v, lambda o, i: setattr(o, "v", i)),
    "future": (torch.futures.Future, lambda o: o.done(), lambda o, i: None if o.done() else o.set_result(i)),
    "queue": (queue.Queue, lambda o: (o.qsize(), o.empty()), lambda o, i: o.put(i)),
    "event": (threading.Event, lambda o: o.is_set(), lambda o, i: o.set() if i % 2 else o.clear()),
}


@pytest.mark.parametrize("what", OBJECTS)
def test_objects_whose_state_no_attribute_shows(what: str) -> None:
    make, ask, change = OBJECTS[what]
    thing = make()
    compiled = magpy_core.compile(lambda x, o: (x * 2, ask(o)), backend="eager")
    for call in range(9):
        if call >= 3:
            change(thing, call)
        assert compiled(torch.ones(2), thing)[1] == ask(thing), f"call {call}"


def _sparse(i: int) -> torch.Tensor:
    return torch.sparse_coo_tensor(torch.tensor([[0, i % 2]]), torch.ones(2), (2,))


def test_whether_a_sparse_tensor_is_coalesced() -> None:
    compiled = magpy_core.compile(lambda x, s: (x * 2, s.is_coalesced()), backend="eager")
    for s in (_sparse(0), _sparse(0), _sparse(0), _sparse(0).coalesce(), _sparse(1)._coalesced_(True)):
        assert compiled(torch.ones(2), s)[1] == s.is_coalesced()


def test_the_collector_stays_as_the_region_leaves_it() -> None:
    def region(x: torch.Tensor) -> Any:
        before = gc.isenabled()
        gc.disable()
        between = gc.isenabled()
        return x * 2, before, between

    compiled = magpy_core.compile(region, backend="eager")
    gc.enable()
    assert compiled(torch.ones(2))[1:] == (True, False) and not gc.isenabled()
    assert compiled(torch.ones(2))[1:] == (False, False) and not gc.isenabled()


@pytest.mark.parametrize("left", ["acquire", "release", "both"])
def test_a_lock_that_a_region_leaves(left: str) -> None:
    """What others see of it: at every call, held or free as eager mode leaves it."""
    lock = threading.Lock()

    def region(x: torch.Tensor) -> torch.Tensor:
        if left != "release":
            lock.acquire()
        if left != "acquire":
            lock.release()
        return x + 1

    compiled = magpy_core.compile(region, backend="eager")
    for _ in range(4):
        if left == "release":
            lock.acquire()
        assert compiled(torch.ones(1)).item() == 2
        assert lock.locked() == (left == "acquire")
        if left == "acquire":
            lock.release()
    assert not magpy_core.captures(compiled), "a replay would have to take the lock"
