"""Counts steps and ends the program after the last one, like Ctrl-C. Key types: StepClock, Marks, StepsInside."""

from __future__ import annotations

import _thread
import signal
import threading
import time
import weakref
from collections.abc import Callable, Hashable
from typing import Any

_REPEATS = 5


class StopAfterSteps(KeyboardInterrupt):
    """The requested steps are done. A KeyboardInterrupt, so that a program that saves its work on Ctrl-C does so here."""


class Marks:
    """When things happened for the first time, or the last one, in seconds since the user's code began."""

    def __init__(self) -> None:
        self._start = time.monotonic()
        self._at: dict[str, float] = {}

    def restart(self) -> None:
        """The user's code begins."""
        self._start = time.monotonic()

    def mark(self, name: str, *, again: bool = False) -> None:
        if again or name not in self._at:
            self._at[name] = time.monotonic() - self._start

    def timings(self) -> dict[str, float]:
        at = self._at
        out = {"import_torch": at["import_torch"]} if "import_torch" in at else {}
        if "first_region" in at:
            out["startup"] = at["first_region"]
            if "first_step" in at:
                out["first_step"] = at["first_step"] - at["first_region"]
                out["later_steps"] = at["last_step"] - at["first_step"]
        out["program"] = time.monotonic() - self._start
        return {name: round(value, 6) for name, value in out.items()}


class StepClock:
    """A step is an ``Optimizer.step``; in a program without optimizers, an outermost module call.

    ``limit`` 0: never stops. ``end`` is called if the program ignores interrupts: after further steps despite repeated
    interrupts, or ``grace`` seconds after the first one.
    """

    def __init__(
        self,
        limit: int,
        on_stop: Callable[[], None] = lambda: None,
        end: Callable[[], None] = lambda: None,
        grace: float = 30.0,
    ) -> None:
        self._on_stop, self._end, self._grace = on_stop, end, grace
        self.on_step: Callable[[int], None] = lambda n: None
        self.before_call: Callable[[], None] | None = None
        """Called before an outermost call, which is then where the program stops; None: it stops right after its step."""
        self.limit = self._next_stop = limit
        self.optimizer_steps = self.module_calls = self._stops = self._unannounced = 0
        self.has_optimizer = False
        self.has_trained: bool | None = None
        """Whether there was a backward pass; None: not known."""
        self.optimizer: Hashable = None
        """Tells apart whose steps they are: of which optimizer, or in calls of which region."""
        self.marks = Marks()

    @property
    def stopped(self) -> bool:
        """Whether the program has been interrupted."""
        return self._stops > 0

    @property
    def count(self) -> int:
        return self.optimizer_steps if self.has_optimizer else self.module_calls

    @property
    def only_evaluates(self) -> bool:
        """Whether the program has an optimizer, as it could train, but does not."""
        return self.has_optimizer and not self.optimizer_steps and self.has_trained is False

    def optimizer_stepped(self, times: int = 1, *, of: object = None, inside: bool = False) -> None:
        """Counts a step ``of`` an optimizer, or of a region that has steps in it; ``check`` is called separately, outside
        regions. One that was made ``inside`` of a region's call is announced when that call has returned: what we do then
        must be no part of a recording."""
        self.has_optimizer, self.optimizer = True, id(of)
        self._unannounced += times
        if not inside:
            self.announce()

    def announce(self, region: object = None) -> int:
        """Announces the steps that were made in a call of ``region``; returns how many."""
        made, self._unannounced = self._unannounced, 0
        if made:
            self.optimizer = self.optimizer if region is None else id(region)
            self.optimizer_steps += made
            self._stepped()  # once: of two in one call, neither has a time of its own
        return made

    def add_unobserved(self, calls: int, steps: int) -> None:
        """Counts calls of modules and steps of optimizers that were not looked at. The next step announces them."""
        self.module_calls += 0 if self.has_optimizer else calls
        self.optimizer_steps += steps

    def module_called(self) -> None:
        self.module_calls += 1
        if not self.has_optimizer:
            self._stepped()

    def _stepped(self) -> None:
        self.marks.mark("first_step")
        self.marks.mark("last_step", again=True)
        self.on_step(self.count)

    def calls(self) -> None:
        """An outermost call is about to begin."""
        if self.before_call is not None:
            self.before_call()
            self._check()

    def check(self) -> None:
        """Raises StopAfterSteps if the requested steps are done."""
        if self.before_call is None:
            self._check()

    def _check(self) -> None:
        if not self.limit or self.count < self._next_stop:
            return
        # A program's `finally` may call a module again: don't interrupt it again.
        self._next_stop = self.count + (1 if self.has_optimizer else self.limit)
        self._stops += 1
        if self._stops == 1:
            self._on_stop()
            timer = threading.Timer(self._grace, self._end)
            timer.daemon = True
            timer.start()
        if self._stops > _REPEATS:
            self._end()
        handler = signal.getsignal(signal.SIGINT)
        if self._stops == 1 and callable(handler) and handler is not signal.default_int_handler:
            signal.raise_signal(signal.SIGINT)  # lets the program handle it; if it continues, we end it
            return
        if threading.current_thread() is not threading.main_thread():
            _thread.interrupt_main()
        raise StopAfterSteps


class StepsInside:
    """Optimizer steps inside of regions: a replayed call makes those of the recorded one, without calling ``step``."""

    def __init__(self) -> None:
        self._of: weakref.WeakKeyDictionary[Any, tuple[int, int]] = weakref.WeakKeyDictionary()
        """Captures with steps inside: how many, and the capture's replays when last seen."""
        self._recordings: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()
        """Of each region, when last seen."""

    def replayed(self, region: Any, made: int) -> int:
        """The steps in the replay that the last call of ``region`` was, in which ``step`` was called ``made`` times."""
        count = 0
        captures = list(region.captures)
        for capture in captures:
            steps, hits = self._of.get(capture, (0, capture.hits))
            if capture.hits > hits:
                self._of[capture] = (steps, capture.hits)
                count += steps
        before, self._recordings[region] = self._recordings.get(region, 0), region.recordings
        if made and captures and region.recordings > before:
            self._of[captures[0]] = (made, captures[0].hits)  # the newest is of this call
        return count
