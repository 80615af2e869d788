"""What became of a region's calls, as far as reports ask. Key type: Tally."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from statistics import median

from magpy_core.findings import Unused
from magpy_core.limits import LIMITS


@dataclass
class Tally:
    """``eager``: seconds of the latest timed calls in eager mode; ``before_capture``: calls until the first capture;
    ``unobserved``: those that nothing has looked at; ``given_up``: why it runs in eager mode, where others say it."""

    eager: deque[float] = field(default_factory=lambda: deque(maxlen=LIMITS.kept_calls))
    before_capture: int = 0
    unobserved: int = 0
    given_up: Unused = ""

    def ran_eager(self, seconds: float) -> None:
        self.eager.append(seconds)

    @property
    def usual_seconds(self) -> float | None:
        """Of a call in eager mode; None: none was timed."""
        return median(self.eager) if self.eager else None
