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

_CHUNK = 1 << 16
_ENDS_WITHIN = 1.0  # seconds; a process that the program has left behind may keep the terminal


class ProgramTerminal:
    """``fd``: for the program; call ``started`` when it has it, or will never have it. ``output`` gets what it prints, on a
    thread."""

    def __init__(self, real: int, output: Callable[[bytes], None]) -> None:
        self._real = real
        self._output = output
        self._before = self._settings = termios.tcgetattr(real)
        self._ours, self.fd = pty.openpty()
        termios.tcsetattr(self.fd, termios.TCSANOW, self._settings)
        self._has_fd = True
        self._pump = threading.Thread(target=self._pass_on, daemon=True, name="magpy-terminal")

    def started(self) -> None:
        self._has_fd = False
        os.close(self.fd)
        self._pump.start()

    def resize(self, rows: int, columns: int) -> None:
        with suppress(termios.error):  # the program has ended
            if termios.tcgetwinsize(self._ours) != (rows, columns):
                termios.tcsetwinsize(self._ours, (rows, columns))

    def close(self) -> None:
        """Passes on the rest, and restores the user's settings."""
        if self._has_fd:
            self.started()  # it could not be
        self._pump.join(_ENDS_WITHIN)
        if self._settings != self._before:
            with suppress(termios.error):
                termios.tcsetattr(self._real, termios.TCSADRAIN, self._before)
        if not self._pump.is_alive():
            os.close(self._ours)

    def _pass_on(self) -> None:
        with suppress(OSError):  # EIO: nobody has it open any more
            while data := os.read(self._ours, _CHUNK):
                self._adopt()
                self._output(data)

    def _adopt(self) -> None:
        """Settings that the program has changed hold for the user's terminal."""
        with suppress(termios.error):
            if (now := termios.tcgetattr(self._ours)) != self._settings:
                self._settings = now
                termios.tcsetattr(self._real, termios.TCSADRAIN, now)
