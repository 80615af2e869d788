"""How the run of a capture can end besides the call's result. Key names: MISS, NotRun, CaptureFailed,
KnownSlower, PathsVary, WrongResult."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import Any

from magpy_core.findings import Location
from magpy_core.verification.beside import Tracing
from magpy_core.verification.cause import Cause

MISS: Any = type("MISS", (), {"__repr__": lambda self: "MISS"})()
"""The guards don't hold, or the graph takes another path: the capture doesn't fit the call."""


class NotRun(Enum):
    """Why a capture that fits the call has not served it. Nothing has changed: the call has to run in eager mode."""

    HELD = "nothing is to be compiled yet"
    NOT_READY = "a graph is being compiled in the background, or can't be now"
    RAISED = "the graph raised, and everything has been undone"
    CONFLICT = "what the effects replace is no longer there, and everything has been undone"
    RAISES = "the recorded call raised: eager mode raises, so that the traceback shows the program's frames"
    UNPROVEN = "what was recorded is compared with this call first"
    RETIRED = "it is no longer used: it was measured to be slower than eager mode, or can't run"


class NotReady(Exception):
    """Raised in place of a graph of the capture that is not ready, before it runs."""


class CaptureFailed(Exception):
    """A capture can't run (its backend failed, or its graph raised in its first run); carries what the finding says."""

    def __init__(
        self,
        code: str,
        message: str,
        hint: str = "",
        location: Location | None = None,
        path: Sequence[Location] = (),
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.hint = hint
        self.location = location  # None: that of the region
        self.path = tuple(path)


class WrongResult(CaptureFailed):
    """Compiled code gives another result than eager mode. Nothing has changed. ``cause``: what is known of it; ``tracing``:
    what looks for it."""

    def __init__(
        self, message: str, location: Location | None, cause: Cause | None = None, tracing: Tracing | None = None
    ) -> None:
        hint = "`magpy-lsp bisect` finds the smallest part that differs, and writes a file that shows it with torch alone."
        super().__init__("MP914", message, hint if cause is None else cause.text, location)
        self.values = () if cause is None else cause.values
        self.tracing = tracing


class KnownSlower(CaptureFailed):
    """The last run of the command has shown that compiled code of this graph is slower."""

    def __init__(self) -> None:
        super().__init__("MP401", "Its compiled code was slower in an earlier run.")


class PathsVary(CaptureFailed):
    """A capture whose graph holds its writes serves few calls: they take other paths."""

    def __init__(self) -> None:
        super().__init__("MP101", "Which way the program goes varies from call to call.")
