"""The program's end of the protocol. Key types: Channel (survives user code), Forwarder (what to send when).

The descriptor has a high number, so that the program's first open file still gets number 3. It is close-on-exec and closed
in forked processes. Each write first checks that the descriptor is still ours, since a program that closes every descriptor
may have reused the number. It is then reopened through the supervisor, which has a copy.
"""

from __future__ import annotations

import fcntl
import os
import resource
import threading
import time
from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, Protocol

from magpy_core.findings.secrets import redact_json
from magpy_core.runner.protocol import Message, encode

if TYPE_CHECKING:
    from magpy_core.findings import Finding, RegionSummary

_HIGHEST = 1000
_EACH = 16  # steps that are all sent, from the first
_STEP_INTERVAL = 0.05


class Listener(Protocol):
    """Who is told what happens in a monitored program."""

    def send(self, message: Message) -> None: ...

    def abandon(self) -> None:
        """Called in a process that the program has forked."""


class Channel:
    """Writes complete lines to the parent. In a forked process it is closed and ignores messages."""

    def __init__(self, fd: int, supervisor: int) -> None:
        self._origin = f"/proc/{supervisor}/fd/{fd}"
        soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        limit = _HIGHEST if soft == resource.RLIM_INFINITY else min(_HIGHEST, soft)
        self.fd = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, max(limit - 8, 3))
        os.close(fd)
        self._identity = self._stat(self.fd)
        self._lock = threading.RLock()  # re-entrant: a user's signal handler may call a module while we write
        self._whole = True
        self.open = True
        self.pid = os.getpid()

    @staticmethod
    def _stat(fd: int) -> tuple[int, int] | None:
        try:
            found = os.fstat(fd)
        except OSError:
            return None
        return found.st_dev, found.st_ino

    def send(self, message: Message) -> None:
        """Sends a message; closes the channel if the parent has exited. Never raises."""
        if not self.open:
            return
        data = encode(redact_json(message))
        with self._lock:
            if self._stat(self.fd) != self._identity and not self._reopen():
                self.open = False
                return
            if not self._whole:
                data = b"\n" + data  # ends the partial line of an interrupted write
            self._whole = False
            try:
                while data:
                    data = data[os.write(self.fd, data) :]
            except OSError:
                self.open = False
                return
            self._whole = True

    def _reopen(self) -> bool:
        try:
            fd = os.open(self._origin, os.O_WRONLY | os.O_CLOEXEC)
        except OSError:
            return False
        if self._stat(fd) != self._identity:
            os.close(fd)
            return False
        self.fd = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, max(self.fd, 3))
        os.close(fd)
        return True

    def abandon(self) -> None:
        """In a forked process: closes the descriptor and replaces a lock that another thread may have held."""
        if self.open and self._stat(self.fd) == self._identity:
            os.close(self.fd)
        self.open = False
        self._lock = threading.RLock()


class Forwarder:
    """Sends new findings and regions at once, and updated counts at most every ``interval`` seconds."""

    def __init__(self, send: Callable[[Message], None], interval: float = 0.25) -> None:
        self._send = send
        self._interval = interval
        self._last = 0.0
        self._known: set[Hashable] = set()
        self._waiting: dict[Hashable, Callable[[], Message]] = {}
        self._progress: dict[str, list[str]] = {}
        self._last_progress = 0.0
        self._last_step = 0.0
        self._unsent_step = 0

    def finding(self, finding: Finding) -> None:
        self._offer(("finding", finding.key), lambda: {"type": "finding", "finding": finding.to_json()})

    def region(self, identity: Hashable, summary: Callable[[], RegionSummary]) -> None:
        """``summary`` is called when the message is sent, so that it contains the latest counts."""
        self._offer(("region", identity), lambda: {"type": "region", "region": summary().to_json()})

    def step(self, n: int) -> None:
        """Step ``n`` has ended. Of quick steps, only some are sent, with the updates that wait."""
        now = time.monotonic()
        self._unsent_step = n
        if n <= _EACH or now - self._last_step >= _STEP_INTERVAL:
            self._last_step = now
            self.finish()
            self.flush()

    def finish(self) -> None:
        """Sends the last step, if it was not sent."""
        if self._unsent_step:
            self._send({"type": "step", "n": self._unsent_step})
            self._unsent_step = 0

    def progress(self, now: float, current: Callable[[], dict[str, list[str]]]) -> None:
        """Sends what is being compiled, if that has changed."""
        if now - self._last_progress >= self._interval:
            self._last_progress = now
            if (found := current()) != self._progress and found:
                self._progress = found
                self._send({"type": "compiling", **found})  # type: ignore[arg-type]

    def compiling(self, region: str) -> None:
        """Sends that the program waits for a graph of ``region`` to be compiled; empty: for none any more."""
        running = [region] if region else []
        self._progress = {"running": running, "waiting": [], "ready": self._progress.get("ready", [])}
        self._send({"type": "compiling", **self._progress})  # type: ignore[arg-type]

    def _offer(self, key: Hashable, message: Callable[[], Message]) -> None:
        if key not in self._known:
            self._known.add(key)
            self._send(message())
            return
        self._waiting[key] = message
        if time.monotonic() - self._last >= self._interval:
            self.flush()

    def forget(self) -> None:
        """Drops what waits: the report has all of it."""
        self._waiting = {}

    def flush(self) -> None:
        self._last = time.monotonic()
        waiting, self._waiting = self._waiting, {}
        for message in waiting.values():
            self._send(message())
