"""How much processor time the compiler may take from a program whose processors are all busy. Key types: FairShare, Account.

A program on all cores leaves no idle time, in which alone a compiler could run unnoticed. So the compiler gets a share: some
seconds at once, and a part of the processor time that the program has used. What counts is what it takes from the program:
while the program's threads don't wait for a processor, compiling is free. A run that is too short for its share to suffice
gains nothing, and the next one would begin again: so the run after it is granted more, once.
"""

from __future__ import annotations

import mmap
from dataclasses import dataclass

from magpy_core.limits import LIMITS

_SLOTS = 511


class Account:
    """One page of memory that the program and the processes compiling for it share: how much the program is expected to
    use, what is granted beyond the usual share, and what each compilation has taken. Each process writes only its own
    slot."""

    def __init__(self) -> None:
        self._microseconds = memoryview(mmap.mmap(-1, (2 + _SLOTS) * 8)).cast("Q")
        self._used = 0

    def new_slot(self) -> int:
        """A slot for one more process. Slots are used again in turn: what the earlier one has taken stays."""
        self._used += 1
        return 2 + self._used % _SLOTS

    def expect(self, seconds: float, granted: float = 0.0) -> None:
        """The program will use so many processor seconds; 0: not known. ``granted``: processor seconds that compilations
        may take at once besides the usual ones."""
        self._microseconds[0], self._microseconds[1] = int(seconds * 1e6), int(granted * 1e6)

    def share(self, program: float, part: float) -> float:
        """Processor seconds that compilations may have taken when the program has used ``program``: some at once, and a
        ``part`` of these."""
        expected, granted = self._microseconds[0] / 1e6, self._microseconds[1] / 1e6
        return LIMITS.compile_at_once + granted + part * max(program, expected)

    @property
    def taken(self) -> float:
        """Processor seconds that all compilations have taken from the program."""
        return sum(self._microseconds[2:].tolist()) / 1e6

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
    """Of one compiling process, which keeps what it has taken in ``slot`` of the ``account``. ``need``: the processor
    seconds that it will probably use."""

    def __init__(self, account: Account, slot: int, first: Reading, need: float = 0.0) -> None:
        self._account, self._slot, self._need = account, slot, need
        self._last = first
        self._used = self._taken = 0.0
        self._suffices = False

    def may_run(self, now: Reading) -> bool:
        """Whether the compiler may run until the next reading. Since the last one, it has taken from the program what the
        program has waited, but no more than it has used itself: the program may wait for others, too.

        What it takes is lost if the program ends before the code is ready. So until the whole share suffices for what is
        left, it gets a small part of it, which shows whether it takes anything at all."""
        used = taken = max(now.compiler - self._last.compiler, 0.0)
        if now.waited is not None and self._last.waited is not None:
            taken = min(used, max(now.waited - self._last.waited, 0.0))
        self._last = now
        self._used += used
        self._taken += taken
        if taken:
            self._account.add(self._slot, taken)
        left = max(self._need - self._used, 0.0) * (self._taken / self._used if self._used else 1.0)
        self._suffices = self._suffices or self._account.taken + left <= self._account.share(
            now.program, LIMITS.compile_share
        )
        if not self._suffices:
            return self._account.taken <= self._account.share(now.program, LIMITS.compile_probe)
        return self._account.taken <= self._account.share(now.program, LIMITS.compile_share)
