"""Intervals of confidence of what was timed. Key function: speedup_interval."""

from __future__ import annotations

from collections.abc import Sequence
from math import comb

_CONFIDENCE = 0.95
_MAX_PAIRS = 200  # the binomial sums stay exact and quick


def speedup_interval(eager: Sequence[float], compiled: Sequence[float]) -> tuple[float, float] | None:
    """An interval that holds the median of eager / compiled with a confidence of at least 95 %.

    The n-th timings of either kind were taken right after each other, so their ratio is free of slow drifts. The interval
    is the sign test's, between two of the sorted ratios: it assumes nothing about how timings are distributed and draws
    no random number (the program's own streams stay untouched). None where there are fewer than six pairs.
    """
    ratios = sorted(e / c for e, c in list(zip(eager, compiled, strict=False))[:_MAX_PAIRS] if c > 0)
    n = len(ratios)
    tail, rank = 0.0, 0  # how many ratios may be left out on either side
    for k in range(n // 2):
        tail += comb(n, k) / 2**n
        if 2 * tail > 1 - _CONFIDENCE:
            break
        rank = k + 1
    return (ratios[rank - 1], ratios[n - rank]) if rank else None
