"""How the run of a capture can end besides the call's result. Key names: MISS, RERUN_PLAIN, CaptureFailed,
PathsVary."""

from __future__ import annotations

from typing import Any

MISS: Any = type("MISS", (), {"__repr__": lambda self: "MISS"})()
"""The guards don't hold, or the graph takes another path: the capture doesn't fit the call."""
RERUN_PLAIN: Any = type("RERUN_PLAIN", (), {"__repr__": lambda self: "RERUN_PLAIN"})()
"""The graph raised, and everything has been undone: the call has to run as plain Python."""


class NotReady(Exception):
    """A graph of the capture is being compiled in the background, or can't be now: the call has to run as plain Python."""


class CaptureFailed(Exception):
    """A capture can't run (its backend failed, or its graph raised in its first run); carries the finding's text."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


class PathsVary(CaptureFailed):
    """A capture whose graph holds its writes serves few calls: they take other paths."""

    def __init__(self) -> None:
        super().__init__("MP101", "Which way the program goes varies from call to call.")
