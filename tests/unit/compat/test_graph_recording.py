"""Threads that could use a device while a call is recorded."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from queue import Queue
from typing import Any

import pytest
import torch
from torch.utils.data import DataLoader

from magpy_core._compat.torch.graph_recording import busy_threads


@contextmanager
def _thread(name: str, module: str = __name__) -> Iterator[None]:
    """A thread that begins in a module, and waits."""
    started, ended = threading.Event(), threading.Event()
    names: dict[str, Any] = {"__name__": module, "started": started, "ended": ended}
    exec("def work():\n    started.set()\n    ended.wait()", names)
    thread = threading.Thread(target=names["work"], name=name)
    thread.start()
    started.wait()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def test_a_thread_of_the_program() -> None:
    before = busy_threads()
    with _thread("evaluation"):
        assert busy_threads() == [*before, "evaluation"]
    assert busy_threads() == before


def test_an_executor_is_busy_while_it_works() -> None:
    before = busy_threads()
    started, go = threading.Event(), Queue[int]()

    def work() -> int:
        started.set()
        return go.get()

    with ThreadPoolExecutor(1, thread_name_prefix="pool") as pool:
        future = pool.submit(work)
        started.wait()
        try:
            assert busy_threads() == [*before, "pool_0"]
        finally:
            go.put(1)
        future.result()


def test_a_loader_with_workers() -> None:
    """Its queues have threads, which use no device but to pin memory."""
    before = busy_threads()
    for _ in DataLoader(torch.arange(8), batch_size=2, num_workers=1):
        assert busy_threads() == before


@pytest.mark.parametrize("module", ["torch.utils.data._utils.pin_memory", "tqdm._monitor", "ipykernel.heartbeat"])
def test_by_the_module_that_a_thread_begins_in(module: str) -> None:
    before = busy_threads()
    with _thread("known", module):
        assert busy_threads() == before
