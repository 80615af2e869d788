"""A terminal for the program's output between it and the user's, so that we see what it prints. Key type: ProgramTerminal.

The program finds what it would find without it: a terminal with the same settings and as many columns. What it changes in
the settings is changed in the user's, whose input goes to the program directly.
"""

from __future__ import annotations

import os
import pty
import termios
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

_CHUNK = 1 << 16
_AGAIN_AFTER = 0.2  # seconds; curses overlooks a new size that comes just before it waits for a key
_ENDS_WITHIN = 1.0  # seconds; a process that the program has left behind may keep the terminal


class ProgramTerminal:
    """``fd``: for the program; call ``started`` when it has it, or will never have it. ``output`` gets what it prints, on a
    thread."""

    def __init__(self, real: int, output: Callable[[bytes], None]) -> None:
        self._real = real
        self._output = output
        self._before = self._shown = termios.tcgetattr(real)
        self._ours, self.fd = pty.openpty()
        termios.tcsetattr(self.fd, termios.TCSANOW, self._before)
        self._has_fd = True
        self._on_resize: Callable[[], None] | None = None
        self._again: threading.Timer | None = None
        self._pump = threading.Thread(target=self._pass_on, daemon=True, name="magpy-terminal")

    def started(self, on_resize: Callable[[], None] | None = None) -> None:
        """``on_resize``: tells the program of another size, since this is not its controlling terminal."""
        self._on_resize = on_resize
        self._has_fd = False
        os.close(self.fd)
        self._pump.start()

    def resize(self, rows: int, columns: int) -> None:
        with suppress(termios.error):  # the program has ended
            if termios.tcgetwinsize(self._ours) != (rows, columns):
                termios.tcsetwinsize(self._ours, (rows, columns))
                if self._on_resize is not None:
                    self._on_resize()
                    self._tell_again(self._on_resize)

    def _tell_again(self, on_resize: Callable[[], None] | None) -> None:
        """Once more after a moment, in place of what was to be told before; None: no more."""
        if self._again is not None:
            self._again.cancel()
        self._again = None if on_resize is None else threading.Timer(_AGAIN_AFTER, on_resize)
        if self._again is not None:
            self._again.daemon = True
            self._again.start()

    def close(self) -> None:
        """Passes on the rest, and restores the user's settings."""
        if self._has_fd:
            self.started()  # it could not be
        self._pump.join(_ENDS_WITHIN)
        self._tell_again(None)
        self.give_back()
        if not self._pump.is_alive():
            os.close(self._ours)

    def adopt(self) -> None:
        """Settings that the program has changed hold for the user's terminal. Only while it is ours: the system stops
        whoever changes another job's."""
        with suppress(termios.error):
            if (now := termios.tcgetattr(self._ours)) != self._shown:
                self._show(now)

    def give_back(self) -> None:
        """The user's terminal has its own settings again, until ``adopt``."""
        if self._shown != self._before and self.is_ours():
            self._show(self._before)

    def is_ours(self) -> bool:
        """Whether we are the job that has the user's terminal."""
        try:
            return os.tcgetpgrp(self._real) == os.getpgrp()
        except OSError:
            return True  # not our controlling terminal: nothing else has it

    def _show(self, settings: list[Any]) -> None:
        with suppress(termios.error):  # it has gone
            termios.tcsetattr(self._real, termios.TCSADRAIN, settings)
            self._shown = settings

    def _pass_on(self) -> None:
        with suppress(OSError):  # EIO: nobody has it open any more
            while data := os.read(self._ours, _CHUNK):
                self._output(data)
