"""What one region's passes take, forward and backward, in a whole step of the program. Key types: Passes, BackwardClock.

A backward pass belongs to the region whose results it starts from. Autograd goes from one region's graph to the next, so
that the time from the beginning of one to the beginning of the next one, or to the end of the pass, is that of one region.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median
from typing import Any

from magpy_core._compat.torch.surroundings import at_end_of_backward, backward_pass
from magpy_core.regions.timing.autograd_hooks import on_backward
from magpy_core.regions.timing.comparison import speedup_interval
from magpy_core.regions.timing.device_clock import when_done

#: Takes an error of ours.
Failed = Callable[[Exception], None]


@dataclass(frozen=True)
class Sums:
    """Seconds of one step."""

    forward: float
    backward: float

    @property
    def both(self) -> float:
        return self.forward + self.backward


class Passes:
    """Of one region. ``plain`` and ``compiled``: of the steps that were timed, each kind by turns. ``idle``: plain steps
    that did not call it."""

    def __init__(self) -> None:
        self.forward = self.backward = 0.0  # in the current step, or those that belong together
        self.plain: list[Sums] = []
        self.compiled: list[Sums] = []
        self.idle = 0

    def restart(self) -> None:
        """What was timed is of code that is used no more."""
        self.plain, self.compiled, self.idle = [], [], 0

    def stepped(self, kind: str, number: int = 1) -> None:
        """A ``number`` of steps that belong together have ended; ``kind``: plain or compiled, if they were timed."""
        kept = {"plain": self.plain, "compiled": self.compiled}.get(kind)
        if kept is not None and self.forward:
            kept.append(Sums(self.forward / number, self.backward / number))
        elif kind == "plain":
            self.idle += 1
        self.forward = self.backward = 0.0

    def interval(self) -> tuple[float, float] | None:
        """Of the speedup of both passes; None where too few steps were timed."""
        return speedup_interval([s.both for s in self.plain], [s.both for s in self.compiled])

    def plain_per_step(self) -> float | None:
        """Seconds of both passes in a plain step, whether it calls the region or not; None if none was timed."""
        if not self.plain:
            return None
        return median(sums.both for sums in self.plain) * len(self.plain) / (len(self.plain) + self.idle)

    @staticmethod
    def medians(sums: list[Sums]) -> tuple[float, float] | None:
        """Forward and backward seconds; None if there are none."""
        return (median(s.forward for s in sums), median(s.backward for s in sums)) if sums else None


class BackwardClock:
    """Adds the seconds of backward passes to the regions' ``Passes``."""

    def __init__(self) -> None:
        self._current: tuple[Passes, Failed] | None = None
        self._since = 0.0

    def watch(self, result: Any, passes: Passes, failed: Failed) -> None:
        """The next backward pass through ``result`` counts to ``passes``, which this keeps alive no longer than others do.
        ``failed``: an error of ours, which the pass must not see."""
        reference = weakref.ref(passes)

        def begins(gradients: Any) -> None:
            try:
                if (found := reference()) is not None:
                    self._enter(found, failed)
            except Exception as error:
                failed(error)

        on_backward(result, begins)

    def stepped(self) -> None:
        self._current = None  # of a pass that raised

    def _enter(self, passes: Passes, failed: Failed) -> None:
        if backward_pass()[0] == -1:
            return  # called by hand
        now = when_done()
        current = self._current  # other threads may have passes of their own
        if current is None:
            at_end_of_backward(self._leave)
        else:
            current[0].backward += now - self._since
        self._current, self._since = (passes, failed), now

    def _leave(self) -> None:
        current, self._current = self._current, None
        if current is None:
            return
        passes, failed = current
        try:
            passes.backward += when_done() - self._since
        except Exception as error:  # the program's backward pass must not see it
            failed(error)
