"""Forwards the program's output to the client: decoded, batched and bounded. Key type: OutputPump.

A program may print binary data, or gigabytes. The client gets text, at most one batch every few hundredths of a second. Of
excessive output it gets the beginning and the end, with a note of how much is omitted.
"""

from __future__ import annotations

import asyncio
import codecs
from collections.abc import Callable

_INTERVAL = 0.05
_BATCH = 128 * 1024
_END = 8 * 1024


class OutputPump:
    """Collects one run's output by stream and passes it to ``send(stream, text)`` on the event loop."""

    def __init__(self, send: Callable[[str, str], None]) -> None:
        self._send = send
        self._loop = asyncio.get_running_loop()
        self._decoders: dict[str, codecs.IncrementalDecoder] = {}
        self._head: list[tuple[str, str]] = []
        self._ends: dict[str, str] = {}
        self._size = 0
        self._dropped = 0
        self._timer: asyncio.TimerHandle | None = None

    def feed(self, stream: str, data: bytes) -> None:
        decoder = self._decoders.get(stream)
        if decoder is None:
            decoder = self._decoders[stream] = codecs.getincrementaldecoder("utf-8")("replace")
        text = decoder.decode(data)
        if text:
            self._add(stream, text)

    def flush(self) -> None:
        """Sends pending output now."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        pending, self._head = self._head, []
        if self._dropped:
            pending.append(("report", f"\n[{self._dropped} characters of output omitted]\n"))
        pending += self._ends.items()
        self._ends = {}
        self._size = self._dropped = 0
        for stream, text in _joined(pending):
            self._send(stream, text)

    def close(self) -> None:
        """Ends the streams: an incomplete character becomes a replacement character."""
        for stream, decoder in self._decoders.items():
            text = decoder.decode(b"", final=True)
            if text:
                self._add(stream, text)
        self.flush()

    def _add(self, stream: str, text: str) -> None:
        # Keeps the first _BATCH characters of an interval, then the end of each stream. Reports are short and
        # always kept.
        if self._size + len(text) <= _BATCH and not self._ends:
            self._head.append((stream, text))
            self._size += len(text)
        else:
            end = self._ends.pop(stream, "") + text
            kept = end if stream == "report" else end[-_END:]
            self._dropped += len(end) - len(kept)
            self._ends[stream] = kept
        if self._timer is None:
            self._timer = self._loop.call_later(_INTERVAL, self.flush)


def _joined(pending: list[tuple[str, str]]) -> list[tuple[str, str]]:
    joined: list[tuple[str, str]] = []
    for stream, text in pending:
        if joined and joined[-1][0] == stream:
            joined[-1] = (stream, joined[-1][1] + text)
        else:
            joined.append((stream, text))
    return joined
