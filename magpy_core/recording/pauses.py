"""Pauses: parts of the run that are not monitored, because replay repeats the whole call. Key type: Pauses."""

from __future__ import annotations

import sys
import types

from magpy_core.recording.journal import Journal


class Pauses:
    """``code``: an opaque frame (logging, an import) during which no frame is monitored."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self.code: types.CodeType | None = None
        self.in_call = False

    def during_call(self) -> None:
        """Monitor no frame until the call that is about to run has returned."""
        self.in_call = True

    def paused(self) -> bool:
        """Whether the opaque frame is still on this thread's stack, or the recording has been aborted."""
        target = self.code
        if target is None:
            return self._journal.aborted
        frame: types.FrameType | None = sys._getframe(1)
        while frame is not None:
            if frame.f_code is target:
                return True
            frame = frame.f_back
        self.code = None
        return False
