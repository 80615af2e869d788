"""Pauses: parts of the run that are not monitored, because replay repeats the whole call. Key type: Pauses."""

from __future__ import annotations

import sys
import types

from magpy_core._compat.torch import checkpoint_calls
from magpy_core.monitor.positions import past_own_frames
from magpy_core.recording.journal import Journal


class Pauses:
    """``code``: an opaque frame (logging, an import) during which no frame is monitored. ``in_checkpoint``: whether a call
    of ``checkpoint`` is in progress."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self.code: types.CodeType | None = None
        self.in_call = False
        self.in_checkpoint = False

    def during_call(self) -> None:
        """Monitor no frame until the call that is about to run has returned."""
        self.in_call = True

    def paused(self) -> bool:
        """Whether the opaque frame is still on this thread's stack, a checkpoint's own code runs, or the recording has been
        aborted."""
        target = self.code
        if target is None:
            return self._journal.aborted or self.in_own_code_of_checkpoint()
        frame: types.FrameType | None = sys._getframe(1)
        while frame is not None:
            if frame.f_code is target:
                return True
            frame = frame.f_back
        self.code = None
        return self.in_own_code_of_checkpoint()

    def in_own_code_of_checkpoint(self) -> bool:
        """Whether code of ``checkpoint`` itself makes the current call. What it keeps for its second run (the state of
        random streams; its arguments, in torch 2.11 by a custom function) is not part of the region's computation."""
        if not self.in_checkpoint:
            return False
        frame = past_own_frames(sys._getframe(1))
        if frame is None or frame.f_code.co_filename != checkpoint_calls.FILE:
            return False
        return frame.f_code is not checkpoint_calls.CALLS_THE_FUNCTION
