"""`magpy-lsp run` in a terminal that pyte keeps, alone or as a job of a shell. Key types: Screen, Shell.

The engine is left out: the test itself sends the runner's messages, and the program waits for what the test types.
"""

from __future__ import annotations

import fcntl
import json
import os
import pty
import select
import shlex
import signal
import subprocess
import sys
import termios
import textwrap
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pyte

from magpy_core.findings import StepReport
from tests.golden.test_formats import faster

ROOT = Path(__file__).parents[3]
PATIENCE = 60.0
ROWS, COLUMNS = 24, 70


def _heed_signals() -> None:
    """As at a terminal: a job in the background, or under nohup, ignores some of them, and so would its children."""
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT):
        signal.signal(number, signal.SIG_DFL)


def _take_terminal() -> None:
    _heed_signals()
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


class Screen:
    """`magpy-lsp run` of a program, and what its terminal shows."""

    def __init__(self, folder: Path, source: str, *options: str, rows: int = ROWS, columns: int = COLUMNS) -> None:
        program, self._fifo = folder / "prog.py", folder / "messages"
        program.write_text(textwrap.dedent(source), encoding="utf-8")
        os.mkfifo(self._fifo)
        self._ours, theirs = pty.openpty()
        termios.tcsetwinsize(theirs, (rows, columns))
        self.screen = pyte.HistoryScreen(columns, rows, history=1000)
        self._stream = pyte.ByteStream(self.screen)
        self.written = b""
        env = {**os.environ, "PYTHONPATH": str(ROOT), "TERM": "xterm-256color", "LC_ALL": "C.UTF-8", "PYTHONUNBUFFERED": "1"}
        for name in ("COLUMNS", "LINES", "NO_COLOR"):
            env.pop(name, None)
        command = [sys.executable, "-m", "tests.unit.cli.live_driver", str(self._fifo), str(program), *options]
        self.theirs = theirs
        self.process = self._start(command, env=env, cwd=folder, stdin=theirs, stdout=theirs, stderr=theirs)
        self._messages: int | None = os.open(self._fifo, os.O_RDWR)  # for both, so that it waits for nobody

    def _start(self, command: list[str], **around: Any) -> subprocess.Popen[bytes]:
        return subprocess.Popen(command, start_new_session=True, preexec_fn=_heed_signals, **around)

    def send(self, **message: Any) -> None:
        assert self._messages is not None
        os.write(self._messages, json.dumps(message).encode() + b"\n")

    def progress(self, n: int, step: StepReport | None = None) -> None:
        self.send(type="step", n=n)
        self.send(type="progress", rate=10.0, compiled=1.0, step=(step or faster()).to_json())

    def type(self, text: str) -> None:
        os.write(self._ours, text.encode())

    def resize(self, rows: int, columns: int) -> None:
        termios.tcsetwinsize(self.theirs, (rows, columns))
        screen = self.screen
        screen.set_margins()
        if rows < screen.lines:  # as xterm does, where pyte would cut off the upper lines
            row, column = screen.cursor.y, screen.cursor.x
            above = max(row - (rows - 1), 0)
            screen.cursor_position()
            screen.delete_lines(above)
            for below in range(rows, screen.lines):
                screen.buffer.pop(below, None)
            screen.cursor.y, screen.cursor.x, screen.lines = row - above, column, rows
        screen.resize(rows, columns)

    def until(self, shown: Callable[[Screen], bool], what: str) -> None:
        deadline = time.monotonic() + PATIENCE
        while not shown(self):
            assert time.monotonic() < deadline, f"{what}:\n{self.text}"
            self._read(0.5)

    def shows(self, text: str) -> None:
        self.until(lambda s: text in s.text, f"never shown: {text!r}")

    def _read(self, seconds: float) -> bool:
        if not select.select([self._ours], [], [], seconds)[0]:
            return False
        data = os.read(self._ours, 1 << 16)
        self.written += data
        self._stream.feed(data)
        return True

    @property
    def lines(self) -> list[str]:
        return [line.rstrip() for line in self.screen.display]

    @property
    def text(self) -> str:
        return "\n".join(self.lines)

    @property
    def above(self) -> list[str]:
        """Everything that has been printed: what has scrolled away, and the rows above the panel."""
        past = ["".join(row[x].data for x in range(self.screen.columns)).rstrip() for row in self.screen.history.top]
        top = next((i for i, line in enumerate(self.lines) if line.startswith("╭")), len(self.lines))
        return [*past, *self.lines[:top]]

    @property
    def has_panel(self) -> bool:
        return "╭─ MagPy" in self.text and self.lines[-1].startswith("╰")

    @property
    def is_clean(self) -> bool:
        """No panel, and all rows scroll."""
        return "MagPy" not in self.text and self.screen.margins in (None, pyte.screens.Margins(0, self.screen.lines - 1))

    def no_more_messages(self) -> None:
        """The run ends when the program has."""
        if self._messages is not None:
            os.close(self._messages)
            self._messages = None

    def end(self) -> int:
        self.no_more_messages()
        self.until(lambda s: s.process.poll() is not None, "the end")
        while self._read(0.0):
            pass
        return self.process.returncode

    def _started(self) -> list[psutil.Process]:
        """What is still there of what it has started, also without a parent: programs have sessions of their own."""
        marker = str(self._fifo.parent)
        return [p for p in psutil.process_iter(["cmdline"]) if any(marker in part for part in p.info["cmdline"] or ())]

    def close(self) -> None:
        for process in self._started():
            process.kill()
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        for fd in (self._ours, self.theirs, self._messages):
            if fd is not None:
                os.close(fd)


class Shell(Screen):
    """The same as a job of an interactive bash, which has the terminal before, between and after."""

    prompt = "$ "

    def _start(self, command: list[str], **around: Any) -> subprocess.Popen[bytes]:
        around["env"] |= {"PS1": self.prompt}
        shell = subprocess.Popen(
            ["bash", "--norc", "--noprofile", "--noediting", "-i"],
            start_new_session=True,
            preexec_fn=_take_terminal,
            **around,
        )
        os.write(self._ours, f" {shlex.join(command)}\n".encode())
        return shell

    def until_stopped(self) -> None:
        self.until(lambda s: "Stopped" in s.text and s.lines[s.screen.cursor.y] == self.prompt.strip(), "the shell's prompt")
        self.until(Shell._answers, "an answer of the shell")

    def _answers(self) -> bool:
        """Whether an empty line has got another prompt: what is typed while bash takes the terminal back may be lost."""
        self.type("\n")
        return self._read(0.5) and self.lines.count(self.prompt.strip()) > 1
