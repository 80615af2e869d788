"""A run in a terminal: the program's output, and below it a panel that says how it is going. Key type: LiveDisplay.

The panel appears with the first figures, is drawn anew when there are others, and disappears at the end. A program that
places something on the screen by itself has the whole screen from then on.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from lsp_server.cli.bottom_panel import BottomPanel, write_all
from lsp_server.cli.deferred_signals import DeferredSignals, leave_by
from lsp_server.cli.escape_sequences import EscapeSequences
from lsp_server.cli.live_panel import panel_lines
from lsp_server.cli.program_terminal import ProgramTerminal
from lsp_server.cli.settings import ResolvedSettings
from lsp_server.formats.live import LiveRun

_INTERVAL = 0.5
_NARROWEST = 40
_LEAVING = (signal.SIGTSTP, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)  # after which the shell has the terminal
_PATIENCE = 1.0  # seconds for a thread that writes; if the terminal takes nothing (Ctrl-S), we could not write either


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
    """A context manager. ``fd``: for the program's stdout and stderr; call ``started`` when it has them.

    ``on_stop``: stops the program and ourselves, and returns when both go on.
    """

    def __init__(self, effective: ResolvedSettings, on_stop: Callable[[signal.Signals], None]) -> None:
        self._color = effective.color
        self._out = sys.stdout.fileno()
        self._run = LiveRun(effective.steps)
        self._waits = effective.compile != "background"  # for the compiler, sometimes before there are any figures
        self._panel = BottomPanel(self._out)
        self._sequences = EscapeSequences()
        self._terminal = ProgramTerminal(self._out, self._print)
        self.fd = self._terminal.fd
        self._begun = self._gone = self._away = False
        self._ended = threading.Event()
        self._ticker = threading.Thread(target=self._tick, daemon=True, name="magpy-panel")
        self._lock = threading.Lock()
        self._on_stop = on_stop
        self._leaving = DeferredSignals(self._leave)

    def __enter__(self) -> LiveDisplay:
        self._terminal.resize(*self._panel.size)
        self._leaving.install(_LEAVING)
        return self

    def started(self, on_resize: Callable[[], None] | None) -> None:
        """``on_resize``: tells the program that its terminal has another size; None if it could not be started."""
        self._terminal.started(on_resize)
        self._ticker.start()

    def take(self, message: Mapping[str, Any]) -> None:
        """Handles a message of the run."""
        with self._leaving.deferred(), self._lock:
            try:
                self._run.take(message)
            except (KeyError, TypeError, ValueError, AttributeError):
                return  # not the runner's: the program has written to its descriptor
            if message["type"] == "progress" or (self._waits and message["type"] == "compiling"):
                self._begun = True
                self._draw()

    def say(self, text: str) -> None:
        """Shows a line of ours as the program's next one."""
        with self._leaving.deferred():
            self._print(f"{text}\r\n".encode())

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        if self._ticker.is_alive():
            self._ticker.join()
        with self._leaving.deferred():
            self._terminal.close()
            with self._lock:
                self._to_screen(self._sequences.rest())
                self._remove()
                self._to_screen(self._sequences.leaving())  # the program was killed while it had the screen
        self._leaving.remove()

    def _print(self, data: bytes) -> None:
        """The program's output, on its way to the screen."""
        with self._lock:
            self._return()
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
                self._return()
                self._draw()

    def _draw(self) -> None:
        rows, columns = self._panel.size
        if not self._begun or self._gone or not self._terminal.is_ours():
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

    def _leave(self, number: signal.Signals) -> None:
        """Ctrl-Z, or the end: the terminal is as we found it, and then the signal has its own effect."""
        alone = self._lock.acquire(timeout=_PATIENCE)
        try:
            if alone:
                self._remove()
                self._to_screen(self._sequences.leaving())
                self._terminal.give_back()
                self._away = True
            self._on_stop(number) if number == signal.SIGTSTP else leave_by(number)
        finally:
            if alone:
                self._lock.release()

    def _return(self) -> None:
        """After Ctrl-Z, as soon as the terminal is ours again; what the program draws, it must draw again."""
        if self._terminal.is_ours():
            self._terminal.adopt()
            if self._away:
                self._to_screen(self._sequences.returning())
                self._away = False
