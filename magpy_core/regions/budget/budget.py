"""What recordings, and loading compiled code, cost a program, whose calls wait for them. Key type: Budget.

The cost stays in proportion to the time that the program has run, so that a program that keeps changing (another path or
value in most calls) is hardly slower than in eager mode.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from magpy_core._compat.torch.fake import symbolic_sizes_imported
from magpy_core.backends.background import QUEUE
from magpy_core.limits import LIMITS
from magpy_core.regions.budget.guard_backoff import GuardBackoff
from magpy_core.regions.budget.history import LastRun


class Budget:
    """The seconds spent, of all regions of a session. ``last``: the last run of the same command; ``now``: the clock, in
    seconds. ``unlimited``: the program affords everything, because its code is compiled ahead of time for later runs.
    ``has_next``: what this run shows is kept for the next one."""

    def __init__(
        self,
        last: LastRun | None = None,
        now: Callable[[], float] | None = None,
        *,
        unlimited: bool = False,
        has_next: bool = False,
    ) -> None:
        self._last_run = last or LastRun()
        self._has_next = has_next
        self._unlimited = unlimited
        self._now = now or time.monotonic
        self._began = self._now()
        self._foreseen = 0.0  # how long the run will take, as far as its loops tell
        self._last: dict[str, float] = {}  # seconds of a region's last recording
        self._wasted: dict[str, int] = {}  # recordings of a region that none of its captures has served a call since
        self._sized: set[str] = set()  # regions whose sizes vary
        self.spent = self.recording = 0.0  # in all, and on recordings

    def add(self, seconds: float) -> None:
        self.spent += seconds

    def expect(self, seconds: float) -> None:
        """The run takes so long in all at least, as far as its loops tell."""
        self._foreseen = seconds

    def recorded(self, region: str, seconds: float, *, confirms: bool = False) -> None:
        """``confirms``: it shows that a capture of ``region`` would serve."""
        self.spent += seconds
        self.recording += seconds
        self._last[region] = seconds
        self._wasted[region] = self._wasted.get(region, 0) + (not confirms)

    def serves(self, region: str) -> None:
        """A capture of ``region`` has served a call."""
        self._wasted[region] = 0

    def affords(self, seconds: float, unnoticed: float = LIMITS.load_at_once, region: str = "") -> bool:
        """Whether a program that ends right after spending ``seconds`` would hardly have lost, or one that takes as long as
        the last run; later it may afford them, if not now."""
        is_wasted = self._wasted.get(region, 0) >= LIMITS.wasted_recordings
        share = (LIMITS.wasted_share if is_wasted else LIMITS.record_share) * (self._now() - self._began)
        if region and not is_wasted and self._last_run.may_save(region):
            ahead = LIMITS.record_share if region in self._last_run.saves else LIMITS.untimed_share
            share = max(share, min(ahead * max(self._last_run.seconds, self._foreseen), LIMITS.most_ahead))
            if self._last_run.ahead is not None:  # what was done ahead of time is to pay from the first steps on
                share = max(share, self._last_run.ahead + LIMITS.most_ahead)
        return self._unlimited or self.spent + seconds <= unnoticed + share

    @property
    def grants_next(self) -> bool:
        """Whether the next run of the command lets the compiler take more time, if this one ends while it is at work."""
        return self._has_next and not self._last_run.unfinished and QUEUE.pays_in(self._now() - self._began)

    @property
    def is_too_short(self) -> bool:
        """Whether the last run has shown that compiling takes more than it saves in a run of this length."""
        return not self._unlimited and self._last_run.is_too_short(self._now() - self._began, self._foreseen)

    def is_known_slower(self, graph: str) -> bool:
        """Whether the last run has shown that compiled code of ``graph``, by the key it is stored as, is slower."""
        return self._last_run.is_slower(graph)

    def _pays(self, region: str, seconds: float) -> bool:
        """Whether the last run has shown that ``region`` will save all that has been spent, and ``seconds``, twice over."""
        return self.spent + seconds <= LIMITS.most_gain * self._last_run.still_saved(region, self._now() - self._began)

    def affords_loading(self, seconds: float, plain_seconds: float, region: str = "") -> bool:
        """Whether to load code of ``region``, which takes ``seconds``, for calls that have taken ``plain_seconds``: code
        that is seldom called would never save what loading it takes, if the program goes on for as long as it has run."""
        if (self._unlimited or self._last_run.ahead is not None) and self.affords(seconds, region=region):
            return True
        return (seconds <= LIMITS.most_gain * plain_seconds and self.affords(seconds)) or self._pays(region, seconds)

    def affords_recording(self, region: str, has_other_sizes: Callable[[], bool] = lambda: False) -> bool:
        """Whether ``region`` may be recorded, which is taken to last as long as before, and longer if sizes are to vary.
        ``has_other_sizes`` takes some time."""
        seconds = self._last.get(region, 0.0)
        if not self._affords_to_record(region, seconds):
            return False
        if symbolic_sizes_imported() or not (region in self._sized or has_other_sizes()):
            return True
        self._sized.add(region)
        return self._affords_to_record(region, seconds + LIMITS.import_sizes)

    def _affords_to_record(self, region: str, seconds: float) -> bool:
        left = self._last_run.seconds - (self._now() - self._began)
        if 0.0 < left < LIMITS.least_left * seconds and not self._unlimited:
            return False
        return self.affords(seconds, LIMITS.record_at_once, region) or self._pays(region, seconds)

    @staticmethod
    def is_worthwhile(backoff: GuardBackoff, seconds: float, elapsed: float) -> bool:
        """Whether to compile a capture whose calls have taken ``seconds`` of the ``elapsed`` ones since it was recorded.
        ``backoff``: which of the region's calls captures fit.
        Compiling takes no time from the program, but caches and memory, which slows it by some percent meanwhile; so if
        code was compiled in vain before, it has to wait."""
        if backoff.fits_few or elapsed < LIMITS.wait_per_wasted * backoff.wasted_seconds:
            return False
        return elapsed < LIMITS.region_share_after or seconds >= LIMITS.least_region_share * elapsed
