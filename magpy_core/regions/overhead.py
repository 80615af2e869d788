"""What recordings, and loading compiled code, cost a program, whose calls wait for them. Key type: Overhead.

The cost stays in proportion to the time that the program has run, so that a program that keeps changing (another path or
value in most calls) is hardly slower than in plain Python.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from magpy_core._compat.torch.fake import symbolic_sizes_imported
from magpy_core.regions.last_run import LastRun
from magpy_core.regions.waiting import Waiting

_TO_RECORD_S, _TO_LOAD_S = 0.5, 1.0  # loading comes before a gain, a recording perhaps before nothing
_MOST_GAIN = 0.5  # of a call's time, by compiling it
_SHARE = 0.04  # of the time the program has run: a hundredth goes to what is not counted, as looking at calls
_TRIES, _SHARE_IN_VAIN = 2, 0.02  # after so many recordings in vain, so small a share
_PER_WASTED = 4.0  # seconds that a capture waits for each second of compiling in vain before
_MOST_AHEAD_S = 3.0  # of the share of a whole run, spent before the run has lasted so long
_SHARE_UNTIMED = 0.02  # ahead, for what the last run has not timed: compiling beside the program may take the rest in vain
_LEAST_LEFT = 10.0  # times what a recording takes, until the program ends if it takes as long as the last run
_LEAST_SHARE = 0.02
_SOON_S = 0.1
_TO_IMPORT_S = 1.5  # what sizes that vary take once: torch imports sympy and TorchDynamo


class Overhead:
    """The seconds spent, of all regions of a session. ``last``: the last run of the same command."""

    def __init__(self, last: LastRun | None = None) -> None:
        self._last_run = last or LastRun()
        self._began = time.monotonic()
        self._last: dict[str, float] = {}  # seconds of a region's last recording
        self._in_vain: dict[str, int] = {}  # recordings of a region that none of its captures has served a call since
        self._sized: set[str] = set()  # regions whose sizes vary
        self.spent = 0.0

    def add(self, seconds: float) -> None:
        self.spent += seconds

    def recorded(self, region: str, seconds: float, *, confirms: bool = False) -> None:
        """``confirms``: it shows that a capture of ``region`` would serve."""
        self.spent += seconds
        self._last[region] = seconds
        self._in_vain[region] = self._in_vain.get(region, 0) + (not confirms)

    def serves(self, region: str) -> None:
        """A capture of ``region`` has served a call."""
        self._in_vain[region] = 0

    def affords(self, seconds: float, unnoticed: float = _TO_LOAD_S, region: str = "") -> bool:
        """Whether a program that ends right after spending ``seconds`` would hardly have lost, or one that takes as long as
        the last run; later it may afford them, if not now."""
        is_in_vain = self._in_vain.get(region, 0) >= _TRIES
        share = (_SHARE_IN_VAIN if is_in_vain else _SHARE) * (time.monotonic() - self._began)
        if region and not is_in_vain and self._last_run.may_save(region):
            ahead = _SHARE if region in self._last_run.saves else _SHARE_UNTIMED
            share = max(share, min(ahead * self._last_run.seconds, _MOST_AHEAD_S))
        return self.spent + seconds <= unnoticed + share

    def _pays(self, region: str, seconds: float) -> bool:
        """Whether the last run has shown that ``region`` will save all that has been spent, and ``seconds``, twice over."""
        return self.spent + seconds <= _MOST_GAIN * self._last_run.still_saved(region, time.monotonic() - self._began)

    def affords_loading(self, seconds: float, plain_seconds: float, region: str = "") -> bool:
        """Whether to load code of ``region``, which takes ``seconds``, for calls that have taken ``plain_seconds``: code
        that is seldom called would never save what loading it takes, if the program goes on for as long as it has run."""
        return (seconds <= _MOST_GAIN * plain_seconds and self.affords(seconds)) or self._pays(region, seconds)

    def affords_recording(self, region: str, has_other_sizes: Callable[[], bool] = lambda: False) -> bool:
        """Whether ``region`` may be recorded, which is taken to last as long as before, and longer if sizes are to vary.
        ``has_other_sizes`` takes some time."""
        seconds = self._last.get(region, 0.0)
        if not self._affords_to_record(region, seconds):
            return False
        if symbolic_sizes_imported() or not (region in self._sized or has_other_sizes()):
            return True
        self._sized.add(region)
        return self._affords_to_record(region, seconds + _TO_IMPORT_S)

    def _affords_to_record(self, region: str, seconds: float) -> bool:
        left = self._last_run.seconds - (time.monotonic() - self._began)
        if 0.0 < left < _LEAST_LEFT * seconds:
            return False
        return self.affords(seconds, _TO_RECORD_S, region) or self._pays(region, seconds)

    @staticmethod
    def is_worthwhile(waiting: Waiting, seconds: float, elapsed: float) -> bool:
        """Whether to compile a capture whose calls have taken ``seconds`` of the ``elapsed`` ones since it was recorded.
        ``waiting``: which of the region's calls captures fit.
        Compiling takes no time from the program, but caches and memory, which slows it by some percent meanwhile; so if
        code was compiled in vain before, it has to wait."""
        if waiting.fits_few or elapsed < _PER_WASTED * waiting.wasted_seconds:
            return False
        return elapsed < _SOON_S or seconds >= _LEAST_SHARE * elapsed
