"""A short text on what a run is compiling. Key type: CompileProgress."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

from lsp_server.formats.view import clean, count


class CompileProgress:
    """Follows the messages of one run; ``text`` is empty while nothing is being compiled or ready."""

    def __init__(self, clock: Callable[[], float] | None = None) -> None:
        self._clock = clock or time.monotonic
        self._since: dict[str, float] = {}
        self._waiting = 0
        self._ready: list[str] = []

    @property
    def is_busy(self) -> bool:
        """Whether something is being compiled, or waits for that."""
        return bool(self._since or self._waiting)

    def take(self, message: Mapping[str, Any]) -> None:
        """Handles a message of type ``compiling``; raises KeyError or TypeError for any other."""
        now = self._clock()
        self._since = {str(name): self._since.get(str(name), now) for name in message["running"]}
        self._waiting, self._ready = len(message["waiting"]), [str(name) for name in message["ready"]]

    def text(self) -> str:
        """For instance ``compiling model: Net for 12 s, 1 waiting; compiled: optimizer: SGD``."""
        parts = []
        if self._since:
            now = self._clock()
            running = ", ".join(f"{clean(name)} for {now - since:.0f} s" for name, since in self._since.items())
            parts.append(f"compiling {running}" + (f", {self._waiting} waiting" if self._waiting else ""))
        if self._ready:
            shown = clean(self._ready[0]) if len(self._ready) == 1 else count(len(self._ready), "region")
            parts.append(f"compiled: {shown}")
        return "; ".join(parts)
