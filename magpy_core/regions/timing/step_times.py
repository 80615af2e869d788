"""When steps ended, and how long some of them took, for the timeline of a report. Key type: StepTimes."""

from __future__ import annotations

from magpy_core.findings import StepSample

_SAMPLES = 1000  # then every second one goes, again and again


class StepTimes:
    """``samples``: steps with their milliseconds. Times are in seconds. ``first``: when the first step began."""

    def __init__(self, now: float) -> None:
        self.samples: list[StepSample] = []
        self._every = 1
        self.first = self._last = now

    @property
    def seconds(self) -> float:
        """From the beginning to the end of the last step."""
        return self._last - self.first

    def lap(self, now: float) -> float:
        """The seconds since the last step ended. One ends ``now``."""
        seconds, self._last = now - self._last, now
        return seconds

    def add(self, number: int, seconds: float, kind: str) -> None:
        """Step ``number`` took ``seconds``."""
        if number % self._every == 0:
            self.keep(number, seconds, kind)

    def keep(self, number: int, seconds: float, kind: str) -> None:
        """Of whatever number it is."""
        self.samples.append(StepSample(number, round(seconds * 1e3, 3), kind))
        if len(self.samples) > _SAMPLES:
            self.samples = self.samples[1::2]
            self._every *= 2
