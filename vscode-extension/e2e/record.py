"""Runs a command in a terminal until it shows a text, and writes what the terminal has got by then.

Usage: python record.py OUT ROWS COLUMNS TEXT COMMAND...; TEXT is a regular expression.
"""

import os
import pty
import re
import signal
import struct
import sys
import termios
from fcntl import ioctl


def main(out: str, rows: str, columns: str, text: str, *command: str) -> None:
    pid, terminal = pty.fork()
    if pid == 0:
        os.environ |= {"TERM": "xterm-256color", "COLORTERM": "truecolor", "LC_ALL": "C.UTF-8"}
        ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", int(rows), int(columns), 0, 0))
        os.execvp(command[0], command)
    got = b""
    while re.search(text, got.decode("utf-8", "ignore")) is None:
        got += os.read(terminal, 1 << 16)  # raises if the command has ended before
    with open(out, "wb") as file:
        file.write(got)
    os.kill(pid, signal.SIGTERM)
    os.waitpid(pid, 0)


if __name__ == "__main__":
    main(*sys.argv[1:])
