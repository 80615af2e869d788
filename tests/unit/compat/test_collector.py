"""Large imports run without collections, where nobody can notice."""

from __future__ import annotations

import gc
import threading

import pytest

from magpy_core._compat.cpython.collector import collector_paused


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a program that has started no thread; here, other tests may have."""
    monkeypatch.setattr(threading, "active_count", lambda: 1)


@pytest.mark.usefixtures("alone")
def test_collections_are_off_inside_and_on_again_afterwards() -> None:
    assert gc.isenabled()
    with collector_paused():
        assert not gc.isenabled()
    assert gc.isenabled()
    with pytest.raises(ImportError), collector_paused():
        raise ImportError
    assert gc.isenabled()


@pytest.mark.usefixtures("alone")
def test_what_the_program_has_switched_off_stays_off() -> None:
    gc.disable()
    try:
        with collector_paused():
            assert not gc.isenabled()
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_another_thread_never_sees_them_off() -> None:
    ends = threading.Event()
    thread = threading.Thread(target=ends.wait)
    thread.start()
    try:
        with collector_paused():
            assert gc.isenabled()
    finally:
        ends.set()
        thread.join()
