"""Lines at the bottom of a terminal that what is printed does not reach. Key type: BottomPanel.

The terminal scrolls the rows above them only, so that output, echoed input and progress bars there need nothing from us.
Each change is written at once, and leaves the cursor where it was.
"""

from __future__ import annotations

import os
import termios
from collections.abc import Sequence

_SAVE, _RESTORE = "\x1b7", "\x1b8"
_DOWN = "\x1bD"  # scrolls at the end, and keeps the column
_LEFT = 6  # rows for the program, at least


class BottomPanel:
    """Draws on the terminal ``fd``. Not thread-safe."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._size = (0, 0)  # rows, columns of the terminal when the panel was placed
        self._height = 0

    @property
    def rows(self) -> int:
        """Rows of the terminal that are the program's."""
        return self.size[0] - self._height

    @property
    def size(self) -> tuple[int, int]:
        """Rows and columns of the terminal; zero if it has gone."""
        try:
            rows, columns = termios.tcgetwinsize(self._fd)
        except termios.error:
            return 0, 0
        return rows, columns

    def has_room(self, height: int) -> bool:
        return self.size[0] >= height + _LEFT

    def draw(self, lines: Sequence[str]) -> None:
        """Shows ``lines``, which fit. The panel grows if necessary, and never shrinks."""
        self.adapt()
        text = self._grown(len(lines)) if len(lines) > self._height else ""
        first = self._size[0] - self._height + 1
        padded = [*lines, *[""] * (self._height - len(lines))]
        text += _SAVE + "".join(f"\x1b[{first + i};1H\x1b[0m\x1b[2K{line}" for i, line in enumerate(padded)) + _RESTORE
        self._write(text)

    def clear(self) -> None:
        """The rows are the program's again."""
        self.adapt()
        if not self._height:
            return
        first = self._size[0] - self._height + 1
        self._write(f"{_SAVE}\x1b[r\x1b[{first};1H\x1b[0m\x1b[J{_RESTORE}")
        self._height = 0

    def _grown(self, height: int) -> str:
        """Makes room below the cursor, wherever that is, and reserves it."""
        more = height - self._height
        self._size, self._height = self.size, height
        return f"{_DOWN * more}\x1b[{more}A{_SAVE}\x1b[1;{self._size[0] - height}r{_RESTORE}"

    def adapt(self) -> None:
        """Removes the panel if the terminal has another size: its lines have moved, somewhere below the cursor."""
        if not self._height or self.size == self._size:
            return
        self._height = 0
        self._write(f"{_SAVE}\x1b[r{_RESTORE}{_DOWN}\x1b[A{_SAVE}\x1b[B\r\x1b[0m\x1b[J{_RESTORE}")

    def _write(self, text: str) -> None:
        write_all(self._fd, text.encode("utf-8"))


def write_all(fd: int, data: bytes) -> None:
    """Raises OSError if the terminal has gone."""
    while data:
        data = data[os.write(fd, data) :]
