"""How much processor time the compiler may take from a program whose processors are all busy. Key types: FairShare, Account.

A program on all cores leaves no idle time, in which alone a compiler could run unnoticed. So the compiler gets a share: some
seconds at once, and a part of the processor time that the program has used. What counts is what it takes from the program:
while the program's threads don't wait for a processor, compiling is free. A run that is too short for its share to suffice
gains nothing, and the next one would begin again: so the run after it is granted more, once. And where it is known how long
the program goes on, a compilation that is sure to pay back twice what it will take gets that at once.

The threads of a parallel loop wait for each other, and spin while they do: one that has lost its processor stops all. So
what is taken from a program on several processors counts as often, and a compilation that may take all that it needs is
better alone on the machine: the program waits until it has ended.
"""

from __future__ import annotations

import math
import mmap
from collections.abc import Callable
from dataclasses import dataclass

from magpy_core.limits import LIMITS

_SLOTS = 511


class Account:
    """Memory that the program and the processes compiling for it share: how much the program is expected to use, what is
    granted beyond the usual share, and what each compilation has taken, was granted and has used. Each process writes only
    its own slots."""

    def __init__(self) -> None:
        self._microseconds = memoryview(mmap.mmap(-1, (2 + 3 * _SLOTS) * 8)).cast("Q")
        self._slots = 0

    def new_slot(self) -> int:
        """A slot for one more process. Slots are used again in turn: what the earlier one has taken stays."""
        self._slots += 1
        return 2 + self._slots % _SLOTS

    def expect(self, seconds: float, granted: float | None = None) -> None:
        """The program will use so many processor seconds; 0: not known. ``granted``: processor seconds that compilations
        may take at once besides the usual ones; None: as many as before."""
        self._microseconds[0] = int(seconds * 1e6)
        if granted is not None:
            self._microseconds[1] = int(granted * 1e6)

    def share(self, program: float, part: float) -> float:
        """Processor seconds that compilations may have taken when the program has used ``program``: some at once, and a
        ``part`` of these."""
        granted = self._microseconds[1] + self._sum(1)
        return LIMITS.compile_at_once + granted / 1e6 + part * max(program, self.expected)

    @property
    def expected(self) -> float:
        """Processor seconds that the program will use in all, as far as that is known."""
        return self._microseconds[0] / 1e6

    @property
    def taken(self) -> float:
        """Processor seconds that all compilations have taken from the program."""
        return self._sum(0) / 1e6

    @property
    def price(self) -> float | None:
        """What each processor second of compiling takes from the program; None until enough of them were used."""
        used = self._sum(2) / 1e6
        return self.taken / used if used >= LIMITS.alone_after else None

    def _sum(self, bank: int) -> int:
        return sum(self._microseconds[2 + bank * _SLOTS : 2 + (bank + 1) * _SLOTS].tolist())

    def add(self, slot: int, taken: float, used: float) -> None:
        self._microseconds[slot] += int(taken * 1e6)
        self._microseconds[2 * _SLOTS + slot] += int(used * 1e6)

    def grant(self, slot: int, seconds: float) -> None:
        """The compilation may take so much more than the usual share."""
        self._microseconds[_SLOTS + slot] += int(seconds * 1e6)


@dataclass(frozen=True)
class Reading:
    """Seconds since each began: ``program``: processor time that the program's threads have used, ``waited``: how long they
    have been ready to run without a processor; None where the system doesn't tell; ``compiler``: processor time of the
    compiling processes; ``elapsed``: all time."""

    program: float
    waited: float | None
    compiler: float
    elapsed: float = 0.0


@dataclass(frozen=True)
class Saving:
    """What the code will save, as far as that is known now. ``sure``: of each second that the program runs, the part that it
    is sure to save; ``awaited``: seconds of calls in eager mode that it could have served so far."""

    sure: Callable[[], float] = lambda: 0.0
    awaited: Callable[[], float] = lambda: math.inf


class FairShare:
    """Of one compiling process, which keeps what it has taken in ``slot`` of the ``account``. ``need``: the processor
    seconds that it will probably use."""

    def __init__(self, account: Account, slot: int, first: Reading, need: float = 0.0, saving: Saving | None = None) -> None:
        self._account, self._slot, self._need, self._saving = account, slot, need, saving or Saving()
        self._is_granted = False
        self._first = self._last = first
        self._used = self._taken = 0.0
        self._suffices = False
        self._threads = 1.0  # of the program, that run at the same time
        self._shared = 0.0  # processor seconds for which a thread of the program waited
        self._alone_from: float | None = None
        self.is_better_alone = False
        """Whether the program had better wait until it has ended."""
        self.is_worth_its_cost = True
        """Whether its code may save what it takes from the program in all."""

    def may_run(self, now: Reading) -> bool:
        """Whether the compiler may run until the next reading. Since the last one, it has taken from the program what the
        program has waited, but no more than it has used itself: the program may wait for others, too.

        What it takes is lost if the program ends before the code is ready. So until the whole share suffices for what is
        left, it gets a small part of it, which shows whether it takes anything at all: that of the first compilation tells
        for all. It gets nothing if it is known how long the program goes on, and that the share never will suffice."""
        self._count(now)
        may_run = self._may_go_on(now.program)
        self.is_better_alone = may_run and self._had_better_be_alone(now.elapsed)
        if self.is_better_alone and self._alone_from is None:
            self._alone_from = now.elapsed
        return may_run

    def _count(self, now: Reading) -> None:
        used = taken = max(now.compiler - self._last.compiler, 0.0)
        if not self.is_better_alone:  # else the program waits for the compiler
            if now.waited is not None and self._last.waited is not None:
                taken = min(used, max(now.waited - self._last.waited, 0.0))
            self._shared += taken
            if (elapsed := now.elapsed - self._first.elapsed) > 0.0:
                ran = now.program - self._first.program + (now.waited or 0.0) - (self._first.waited or 0.0)
                self._threads = max(ran / elapsed, 1.0)
        self._last = now
        taken *= self._threads
        self._used += used
        self._taken += taken
        if used:
            self._account.add(self._slot, taken, used)

    def _may_go_on(self, program: float) -> bool:
        if not self._is_granted and self._pays_back(program):
            self._is_granted = True
            self._account.grant(self._slot, self._need * self._threads)
        share, taken, price = self._account.share, self._account.taken, self._account.price
        if price is None:  # it is to show what compiling takes
            return taken <= share(program, LIMITS.compile_probe)
        left = max(self._need - self._used, 0.0) * price
        self.is_worth_its_cost = self._is_granted or self._taken + left <= self._worth(program)
        self._suffices = self._suffices or taken + left <= share(program, LIMITS.compile_share)
        if not self.is_worth_its_cost or (not self._suffices and self._account.expected > program):
            return False
        if self._suffices:
            return taken <= share(program, LIMITS.compile_share)
        return taken <= LIMITS.alone_after * self._threads + LIMITS.compile_probe * program

    def _worth(self, program: float) -> float:
        """Processor seconds that its code saves at most, from now on: the calls that it would serve take the part of time
        that they have taken so far, and the program goes on for as long as expected, or as long as it has run."""
        awaited = self._saving.awaited() * self._threads
        ahead = (self._account.expected - program) / program if self._account.expected > program > 0.0 else 1.0
        return LIMITS.most_gain * awaited * ahead

    def _had_better_be_alone(self, now: float) -> bool:
        """It may take what it needs, threads of the program that wait for each other lose processors to it, and it has not
        taken much longer than expected, be it because others are busy, too. While the program waits, it loses none."""
        if self._alone_from is not None and now - self._alone_from > LIMITS.payback * self._need:
            return False
        is_shared = self._used >= LIMITS.alone_after and self._shared >= LIMITS.alone_from * self._used
        is_parallel = (self._is_granted or self._suffices) and self._threads >= LIMITS.parallel_program
        return is_parallel and (is_shared or self.is_better_alone) and self._used <= LIMITS.alone_most * self._need

    def _pays_back(self, program: float) -> bool:
        """Whether it will save several times what it takes, while the program goes on for as long as expected."""
        if not self._need:
            return False
        cost = self._need * self._threads  # if the program waits, all of its threads do
        return self._saving.sure() * (self._account.expected - program) >= LIMITS.payback * cost
