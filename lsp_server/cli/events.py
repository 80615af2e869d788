"""``--events FILE``: what happens in a run, as it happens, one JSON object per line. Key type: EventFile.

For dashboards and scripts that follow a run (`tail -f`) or read it afterwards; docs/reference/json.md lists the events.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TextIO

from lsp_server.cli.settings import ResolvedSettings
from magpy_core import __version__
from magpy_core.runner.protocol import Message
from magpy_core.runner.request import Outcome

VERSION = 1
#: Messages that say nothing of the program.
_INTERNAL = frozenset({"hello", "exit"})


class EventFile:
    """One file for all programs of a command. Writing never fails a run: a full disk ends the file."""

    def __init__(self, path: Path | None) -> None:
        self._stream: TextIO | None = None if path is None else open(path, "w", encoding="ascii", buffering=1)
        self._lock = threading.Lock()
        self._start = time.monotonic()

    def begin(self, effective: ResolvedSettings) -> None:
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        self._write(
            effective, {"type": "begin", "version": VERSION, "mode": effective.mode, "magpy": __version__, "at": now}
        )

    def follow(self, effective: ResolvedSettings, messages: Iterable[Message]) -> Iterator[Message]:
        """``messages``, written on the way."""
        for message in messages:
            if message["type"] not in _INTERNAL:
                self._write(effective, dict(message))
            yield message

    def end(self, effective: ResolvedSettings, outcome: Outcome) -> None:
        ended = {"kind": outcome.kind, "exit_code": outcome.exit_code, "signal": outcome.signal, "message": outcome.message}
        self._write(effective, {"type": "end", **ended})

    def close(self) -> None:
        with self._lock:
            self._give_up()

    def _write(self, effective: ResolvedSettings, event: dict[str, Any]) -> None:
        if self._stream is None:
            return
        seconds = round(time.monotonic() - self._start, 3)
        with self._lock:
            try:
                if self._stream is not None:
                    self._stream.write(json.dumps({"seconds": seconds, "program": effective.title, **event}) + "\n")
            except OSError:
                self._give_up()

    def _give_up(self) -> None:
        stream, self._stream = self._stream, None
        if stream is not None:
            with suppress(OSError):  # what is left in its buffer can't be written either
                stream.close()
