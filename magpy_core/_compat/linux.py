"""What Linux lets a process ask for itself, by prctl(2). Nothing happens elsewhere. Key functions: end_with_parent,
adopt_orphans."""

from __future__ import annotations

import signal
from contextlib import suppress

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36


def _prctl(option: int, value: int) -> None:
    # These are second safeguards, so a Python without ctypes does not matter.
    with suppress(ImportError, OSError, AttributeError):
        import ctypes

        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def end_with_parent() -> None:
    """The process is killed when the one that forked it ends, from now on."""
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def adopt_orphans() -> None:
    """Descendants whose parents end become children of this process."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)
