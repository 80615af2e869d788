"""Signals that wait while the main thread is in the middle of something. Key type: DeferredSignals."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any


class DeferredSignals:
    """Calls ``handle`` on signals, in the main thread, but never while that is in a ``deferred`` block."""

    def __init__(self, handle: Callable[[signal.Signals], None]) -> None:
        self._handle = handle
        self._before: dict[signal.Signals, Any] = {}
        self._waiting: list[signal.Signals] = []
        self._is_deferred = False

    def install(self, numbers: Iterable[signal.Signals]) -> None:
        """A signal that is ignored (``nohup``) stays so, and one that native code handles."""
        for number in numbers:
            if signal.getsignal(number) not in (signal.SIG_IGN, None):
                self._before[number] = signal.signal(number, self._on_signal)

    def remove(self) -> None:
        for number, before in self._before.items():
            signal.signal(number, before)

    @contextmanager
    def deferred(self) -> Iterator[None]:
        self._is_deferred = True
        try:
            yield
        finally:
            self._is_deferred = False
            while self._waiting:
                self._handle(self._waiting.pop(0))

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        if self._is_deferred:
            self._waiting.append(signal.Signals(number))
        else:
            self._handle(signal.Signals(number))


def leave_by(number: signal.Signals) -> None:
    """The signal's own effect on this process; returns if it was only stopped, and goes on. Main thread only."""
    before = signal.signal(number, signal.SIG_DFL)
    signal.raise_signal(number)  # to this thread, so that it does not go on before
    signal.signal(number, before)
