"""How much processor time the compiler may take from a program whose processors are all busy. Key types: FairShare, Account.

A program on all cores leaves no idle time, in which alone a compiler could run unnoticed. So the compiler gets a share: some
seconds at once, and a part of the processor time that the program has used. What counts is what it takes from the program:
while the program's threads don't wait for a processor, compiling is free.
"""

from __future__ import annotations

import mmap
from dataclasses import dataclass

from magpy_core.limits import LIMITS

_SLOTS = 511


class Account:
    """One page of memory that the program and the processes compiling for it share: what each of them has taken, and how
    much the program is expected to use. Each process writes only its own slot."""

    def __init__(self) -> None:
        self._microseconds = memoryview(mmap.mmap(-1, (1 + _SLOTS) * 8)).cast("Q")
        self._used = 0

    def new_slot(self) -> int:
        """A slot for one more process. Slots are used again in turn: what the earlier one has taken stays."""
        self._used += 1
        return 1 + self._used % _SLOTS

    @property
    def expected(self) -> float:
        """Processor seconds that the program is expected to use; 0: not known."""
        return self._microseconds[0] / 1e6

    def expect(self, seconds: float) -> None:
        self._microseconds[0] = int(seconds * 1e6)

    @property
    def taken(self) -> float:
        """Processor seconds that all compilations have taken from the program."""
        return sum(self._microseconds[1:].tolist()) / 1e6

    def add(self, slot: int, seconds: float) -> None:
        self._microseconds[slot] += int(seconds * 1e6)


@dataclass(frozen=True)
class Reading:
    """Seconds since each began: ``program``: processor time that the program's threads have used, ``waited``: how long they
    have been ready to run without a processor; None where the system doesn't tell; ``compiler``: processor time of the
    compiling processes."""

    program: float
    waited: float | None
    compiler: float


class FairShare:
    """Of one compiling process, which keeps what it has taken in ``slot`` of the ``account``."""

    def __init__(self, account: Account, slot: int, first: Reading) -> None:
        self._account, self._slot = account, slot
        self._last = first

    def may_run(self, now: Reading) -> bool:
        """Whether the compiler may run until the next reading. Since the last one, it has taken from the program what the
        program has waited, but no more than it has used itself: the program may wait for others, too."""
        used = max(now.compiler - self._last.compiler, 0.0)
        if now.waited is not None and self._last.waited is not None:
            used = min(used, max(now.waited - self._last.waited, 0.0))
        self._last = now
        if used:
            self._account.add(self._slot, used)
        share = LIMITS.compile_share * max(now.program, self._account.expected)
        return self._account.taken <= LIMITS.compile_at_once + share
