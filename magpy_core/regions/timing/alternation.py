"""In which steps of a program compiled code serves and in which eager mode, so that whole steps are timed side by
side. Key type: Alternation."""

from __future__ import annotations

from magpy_core.limits import LIMITS


class Alternation:
    """``is_plain``: in the current step, what is compiled runs in eager mode. ``is_open``: steps are timed, or will be
    when compiled code has warmed up."""

    def __init__(self) -> None:
        self.is_plain = self.is_open = False
        self._at = 0
        self._windows = 0

    @property
    def is_timed(self) -> bool:
        """Whether the current step is timed."""
        return self.is_open and self._at >= LIMITS.warm_up_steps

    def begin(self) -> None:
        """Something has changed: a region was captured, or compiled code has arrived."""
        if self._windows < LIMITS.alternation_windows:
            self._windows += not self.is_open or self._at > LIMITS.warm_up_steps
            self.is_open, self.is_plain, self._at = True, False, 0

    def stepped(self) -> bool:
        """A step has ended; the next one begins. Whether the steps that are timed are over."""
        if not self.is_open:
            return False
        self._at += 1
        self.is_open = self._at < LIMITS.warm_up_steps + LIMITS.alternating_steps
        self.is_plain = self.is_open and self._at >= LIMITS.warm_up_steps and (self._at - LIMITS.warm_up_steps) % 2 == 1
        return not self.is_open

    def end(self) -> None:
        """Enough is known."""
        self.is_open = self.is_plain = False
