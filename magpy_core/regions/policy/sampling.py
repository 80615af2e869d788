"""Calls and steps of a program that nothing has looked at: they are taken to be like those that were looked at before.

Key type: CallSample.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from magpy_core.capture.build import Capture
from magpy_core.regions.policy.policy import Policy
from magpy_core.regions.region_protocol import RegionView
from magpy_core.regions.timing.steps import Steps


class Sampled(RegionView, Protocol):
    """A region, with its policy."""

    policy: Policy


@dataclass(frozen=True)
class _Seen:
    """Of a region's captures: the calls that ran in eager mode instead, and their seconds."""

    calls: int
    plain_calls: int
    plain_seconds: float


class CallSample:
    """Compares two looks at the regions, each after some calls that were looked at."""

    def __init__(self, regions: Iterable[RegionView], steps: Steps) -> None:
        self._steps = steps.count
        self._served = 0
        self._seen: dict[str, _Seen] = {}
        for region in regions:
            self._served += region.hits + region.recordings
            plain = [capture.plain for capture in region.captures]
            self._seen[region.id] = _Seen(region.calls, sum(n for n, _ in plain), sum(seconds for _, seconds in plain))

    def all_eager_since(self, before: CallSample) -> bool:
        """Whether all calls since then ran in eager mode, and nothing was recorded."""
        return self._served == before._served

    def add(self, regions: Sequence[Sampled], before: CallSample, steps: int, rate: float) -> None:
        """``steps`` more steps have run, as those since ``before`` did; or about ``rate`` times as many calls, if these were
        in no step."""
        known_steps = self._steps - before._steps
        rate = steps / known_steps if known_steps else rate
        for region in regions:
            seen, known = self._seen.get(region.id), before._seen.get(region.id)
            if seen is None or known is None or (calls := round((seen.calls - known.calls) * rate)) <= 0:
                continue
            region.calls += calls
            region.times.tally.unobserved += calls
            region.log.counts.unwatched(region.calls, steps, plain=bool(region.disabled))
            awaited: Capture | None = region.policy.backoff.awaited()
            if awaited is not None and (plain := round((seen.plain_calls - known.plain_calls) * rate)) > 0:
                awaited.ran_plain((seen.plain_seconds - known.plain_seconds) * rate, plain)
