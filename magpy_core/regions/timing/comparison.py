"""The one answer to "is compiled code faster than eager mode?": a sequential test over neighbours. Key type: Comparison; key
function: speedup_interval.

What is compared differs (calls, whole steps, windows of calls, the passes of a step); how it is decided does not: the n-th
timings of either kind were taken right after each other, and the test looks at fixed numbers of pairs until the interval of
the speedup leaves 1.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from math import comb
from statistics import median

from magpy_core.limits import LIMITS


def speedup_interval(eager: Sequence[float], compiled: Sequence[float]) -> tuple[float, float] | None:
    """An interval that holds the median of eager / compiled with a confidence of at least 95%.

    The n-th timings of either kind were taken right after each other, so their ratio is free of slow drifts. The interval
    is the sign test's, between two of the sorted ratios: it assumes nothing about how timings are distributed and draws
    no random number (the program's own streams stay untouched). None where there are fewer than six pairs.
    """
    ratios = sorted(e / c for e, c in list(zip(eager, compiled, strict=False))[: LIMITS.most_pairs] if c > 0)
    n = len(ratios)
    tail, rank = 0.0, 0  # how many ratios may be left out on either side
    for k in range(n // 2):
        tail += comb(n, k) / 2**n
        if 2 * tail > 1 - LIMITS.confidence:
            break
        rank = k + 1
    return (ratios[rank - 1], ratios[n - rank]) if rank else None


class Comparison:
    """``eager`` and ``compiled``: seconds; the n-th of either were neighbours, or, if ``grouped`` is more than 1, the n-th
    groups of so many. ``pays``: whether compiled code is no slower; None until that is known.
    ``looks``: the numbers of timings of either kind after which to look, in rising order. At the last one, the typical ratio
    decides, so that a comparison ends. Without any, `interval` is asked for instead."""

    def __init__(self, looks: Sequence[int] = (), *, grouped: int = 1) -> None:
        self._looks, self._grouped = looks, grouped
        self.eager: list[float] = []
        self.compiled: list[float] = []
        self.pays: bool | None = None

    def restart(self) -> None:
        """Other code runs from now on: nothing is known of it."""
        self.eager, self.compiled, self.pays = [], [], None

    @property
    def pairs(self) -> int:
        return min(len(self.eager), len(self.compiled))

    def interval(self) -> tuple[float, float] | None:
        """Of the speedup; None where too little was timed."""
        return speedup_interval(*self._groups())

    @property
    def is_certain(self) -> bool:
        """Whether it is known which of the two is faster."""
        interval = self.interval()
        return interval is not None and not interval[0] <= 1.0 <= interval[1]

    def medians(self, fewest: int) -> tuple[float, float] | None:
        """Seconds in eager mode and compiled; None where fewer than ``fewest`` of either kind were timed."""
        return (median(self.eager), median(self.compiled)) if self.pairs >= fewest else None

    def look(self) -> None:
        """Two neighbours, or groups of neighbours, have been added: decide, if it is time to."""
        if len(self.eager) not in self._looks:
            return
        interval = self.interval()
        if interval is None:
            return
        if not interval[0] <= 1.0 <= interval[1]:
            self.pays = interval[0] > 1.0
        elif len(self.eager) == self._looks[-1]:
            self.pays = _typical_log_ratio(*self._groups()) >= 0.0

    def _groups(self) -> tuple[Sequence[float], Sequence[float]]:
        return _summed(self.eager, self._grouped), _summed(self.compiled, self._grouped)


def _summed(timings: Sequence[float], number: int) -> Sequence[float]:
    return timings if number == 1 else [math.fsum(timings[i : i + number]) for i in range(0, len(timings), number)]


def _typical_log_ratio(eager: Sequence[float], compiled: Sequence[float]) -> float:
    """The mean without a tenth at either end. Where calls take one of two times, ratios lie on both sides of the true one,
    and any in between could be their median."""
    ratios = sorted(math.log(e / c) for e, c in zip(eager, compiled, strict=True) if e > 0 and c > 0)
    cut = len(ratios) // 10
    kept = ratios[cut : len(ratios) - cut]
    return math.fsum(kept) / len(kept) if kept else 0.0
