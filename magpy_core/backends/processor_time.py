"""What processes and their threads have used of the processors, and waited for them, as Linux counts it. Key functions:
used_by_tree, used_by, Waits."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

_TICK = 1 / os.sysconf("SC_CLK_TCK")
_FIRST = 11  # utime in a process's stat, after its name; then stime, cutime, cstime


def _fields(pid: int) -> list[str]:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()


def used_by(pid: int) -> float:
    """Processor seconds of all threads of a process; 0 if it has ended."""
    try:
        return sum(map(int, _fields(pid)[_FIRST : _FIRST + 2])) * _TICK
    except (OSError, ValueError, IndexError):
        return 0.0


def used_by_tree(pid: int) -> float:
    """Processor seconds of a process, its descendants, and those of them that have ended and been waited for."""
    ticks, left = 0, [pid]
    while left:
        one = left.pop()
        with suppress(OSError, ValueError, IndexError):  # it has just ended: its parent counts it
            ticks += sum(map(int, _fields(one)[_FIRST : _FIRST + 4]))
            for thread in os.listdir(f"/proc/{one}/task"):
                left += map(int, Path(f"/proc/{one}/task/{thread}/children").read_text().split())
    return ticks * _TICK


class Waits:
    """How long the threads of a process have been ready to run without a processor."""

    def __init__(self, pid: int) -> None:
        self._threads = f"/proc/{pid}/task"
        self._last: dict[str, int] = {}
        self._total = 0
        self.seconds()

    def seconds(self) -> float | None:
        """Since this began; threads that have ended count with what was read last. None where Linux doesn't tell."""
        try:
            names = os.listdir(self._threads)
        except OSError:
            return self._total / 1e9
        for name in names:
            try:
                waited = int(Path(f"{self._threads}/{name}/schedstat").read_text().split()[1])
            except FileNotFoundError:
                if Path(f"{self._threads}/{name}/stat").exists():
                    return None
                continue
            except (OSError, ValueError, IndexError):
                return None
            self._total += max(waited - self._last.get(name, 0), 0)
            self._last[name] = waited
        return self._total / 1e9
