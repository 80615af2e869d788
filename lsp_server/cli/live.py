"""A run in a terminal: the program's output, and below it a panel that says how it is going. Key type: LiveDisplay.

The panel appears with the first figures, is drawn anew when there are others, and disappears at the end. A program that
places something on the screen by itself has the whole screen from then on.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Mapping
from contextlib import suppress
from types import FrameType
from typing import Any

from lsp_server.cli.bottom_panel import BottomPanel, write_all
from lsp_server.cli.escape_sequences import EscapeSequences
from lsp_server.cli.live_panel import panel_lines
from lsp_server.cli.program_terminal import ProgramTerminal
from lsp_server.cli.settings import ResolvedSettings
from lsp_server.formats.live import LiveRun

_INTERVAL = 0.5
_NARROWEST = 40
_LEAVING = (signal.SIGTSTP, signal.SIGTERM)  # after which the shell has the terminal


def is_possible(effective: ResolvedSettings) -> bool:
    """Whether the user has asked for a panel, and stdout and stderr are one terminal that can have it."""
    if not effective.live or effective.mode != "run" or effective.outputs.document_on_stdout:
        return False
    out, err = sys.stdout, sys.stderr
    try:
        one = out.isatty() and err.isatty() and os.path.samestat(os.fstat(out.fileno()), os.fstat(err.fileno()))
    except (OSError, ValueError):  # closed, or replaced
        return False
    return one and os.environ.get("TERM", "dumb") != "dumb" and out.encoding.lower().replace("-", "") == "utf8"


class LiveDisplay:
    """A context manager. ``fd``: for the program's stdout and stderr; call ``started`` when it has them."""

    def __init__(self, effective: ResolvedSettings) -> None:
        self._color = effective.color
        self._out = sys.stdout.fileno()
        self._run = LiveRun(effective.steps)
        self._panel = BottomPanel(self._out)
        self._sequences = EscapeSequences()
        self._terminal = ProgramTerminal(self._out, self._print)
        self.fd = self._terminal.fd
        self._lock = threading.RLock()  # re-entrant: a signal may arrive while this thread draws
        self._begun = self._gone = False
        self._ended = threading.Event()
        self._ticker = threading.Thread(target=self._tick, daemon=True, name="magpy-panel")
        self._handlers: dict[signal.Signals, Any] = {}

    def __enter__(self) -> LiveDisplay:
        self._terminal.resize(*self._panel.size)
        for number in _LEAVING:
            if signal.getsignal(number) is signal.SIG_DFL:
                self._handlers[number] = signal.signal(number, self._leave)
        return self

    def started(self) -> None:
        self._terminal.started()
        self._ticker.start()

    def take(self, message: Mapping[str, Any]) -> None:
        """Handles a message of the run."""
        with self._lock:
            try:
                self._run.take(message)
            except (KeyError, TypeError, ValueError, AttributeError):
                return  # not the runner's: the program has written to its descriptor
            if message["type"] == "progress":
                self._begun = True
                self._draw()

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        if self._ticker.is_alive():
            self._ticker.join()
        self._terminal.close()
        with self._lock:
            self._to_screen(self._sequences.rest())
            self._remove()
        for number, before in self._handlers.items():
            signal.signal(number, before)

    def _print(self, data: bytes) -> None:
        """The program's output, on its way to the screen."""
        with self._lock:
            self._run.output(data)
            whole = self._sequences.whole(data)
            if self._sequences.takes_screen and not self._gone:
                self._gone = True
                self._remove()
            with suppress(OSError):  # as below
                self._panel.adapt()
            self._to_screen(whole)

    def _to_screen(self, data: bytes) -> None:
        with suppress(OSError):  # the terminal has gone, and the program must not wait for it
            write_all(self._out, data)

    def _tick(self) -> None:
        while not self._ended.wait(_INTERVAL):
            with self._lock:
                self._draw()

    def _draw(self) -> None:
        rows, columns = self._panel.size
        if not self._begun or self._gone or not self._in_foreground():
            self._terminal.resize(rows, columns)
            return
        lines = panel_lines(self._run.text(), columns, self._color)
        if columns < _NARROWEST or not self._panel.has_room(len(lines)):
            self._remove()
            return
        with suppress(OSError):  # as above
            self._panel.draw(lines)
        self._terminal.resize(self._panel.rows, columns)

    def _remove(self) -> None:
        with suppress(OSError):
            self._panel.clear()
        self._terminal.resize(*self._panel.size)

    def _in_foreground(self) -> bool:
        try:
            return os.tcgetpgrp(self._out) == os.getpgrp()
        except OSError:
            return True  # not our controlling terminal: nothing else has it

    def _leave(self, number: int, frame: FrameType | None) -> None:
        """Ctrl-Z, or the end: without the panel, and then as the signal's own effect is."""
        with self._lock:
            self._remove()
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
        signal.signal(number, self._leave)  # it goes on
