"""Batches of the search: one kind's cases for a few seconds, in a process of their own, and what they tell of themselves.

A case is told before it runs, so that what the process dies of has a name. A difference is told as it was found and once
more when it is shorter, so that a process that is stopped while it shortens has lost nothing. Key types: Batch, Kind.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from magpy_core.regions.region import Region

Tell = Callable[[str, Any], None]
Part = TypeVar("Part")
_SHORTENING = 10.0  # seconds


@dataclass(frozen=True)
class Kind:
    """What the search tries in turn. ``run(rng, batch)`` begins cases until the batch is over; ``missing``: why it can't."""

    name: str
    run: Callable[[random.Random, Batch], None]
    missing: str = ""
    seconds: float = 5.0  # of one batch
    limit: float = 90.0  # of one case: it hangs if it takes longer


class Batch:
    """Where a kind tells its cases and differences. Calls are counted by themselves, those of every region."""

    def __init__(self, tell: Tell, seconds: float) -> None:
        self.tell, self.end = tell, time.monotonic() + seconds
        self.cases = self.found = 0

    @property
    def over(self) -> bool:
        return self.cases > 0 and time.monotonic() > self.end

    def case(self, text: str) -> None:
        """A case begins; ``text`` repeats it."""
        self.cases += 1
        self.tell("case", (self.cases, counted_calls(), text))

    def differs(self, text: str, shorter: Callable[[], str] | None = None) -> None:
        """The case differs. ``shorter`` makes a text of a smaller case that still does."""
        self.found += 1
        self.tell("difference", (self.found, text))
        if shorter is not None:
            self.tell("difference", (self.found, shorter()))


def shortest(parts: Sequence[Part], differs: Callable[[Sequence[Part]], bool], seconds: float = _SHORTENING) -> list[Part]:
    """As few of the parts, in order, as still differ, or as few as there is time to find."""
    end = time.monotonic() + seconds
    kept = list(parts)
    i = 0
    while i < len(kept) and time.monotonic() < end:
        shorter = kept[:i] + kept[i + 1 :]
        if shorter and differs(shorter):
            kept = shorter
        else:
            i += 1
    return kept


_calls = 0


def count_calls() -> None:
    """From now on, count every call that the program makes of a region of this process."""

    def get(region: Any) -> int:
        return int(region.__dict__["calls"])

    def put(region: Any, number: int) -> None:
        global _calls
        _calls += number > 0
        region.__dict__["calls"] = number

    Region.calls = property(get, put)  # type: ignore[assignment]


def counted_calls() -> int:
    return _calls
