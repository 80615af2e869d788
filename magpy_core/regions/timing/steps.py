"""The steps of a program, plain and compiled: how long each took, and what the run has saved. Key type: Steps."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from statistics import median
from time import perf_counter

from magpy_core.findings import STEP_KINDS
from magpy_core.limits import LIMITS
from magpy_core.regions.timing.alternation import Alternation
from magpy_core.regions.timing.comparison import Comparison
from magpy_core.regions.timing.device_clock import when_done
from magpy_core.regions.timing.observed_windows import ObservedWindows
from magpy_core.regions.timing.optimizer_cycle import OptimizerCycle
from magpy_core.regions.timing.passes import BackwardClock
from magpy_core.regions.timing.step_times import StepTimes

_SAMPLES = 1000  # plain steps of a check that are timed


class StepActivity:
    """How the regions' calls of one step ran."""

    def __init__(self) -> None:
        self.plain = self.compiled = 0  # by turns; a region without compiled code counts as neither
        self.waited = 0.0  # seconds, for recordings and for code that was compiled or loaded
        self.compared = 0.0  # seconds, of code with eager mode

    @property
    def kind(self) -> str:
        """One of STEP_KINDS."""
        if self.waited:
            return "waited"
        if self.compiled:
            return "mixed" if self.plain else "compiled"
        return "plain"


class Steps:
    """Of one session. ``stepped`` ends a step, when no region is being called. ``on_end`` is called when steps that belong
    together have ended: with their kind if they were timed, their number, and whether enough have been. ``observes``:
    nothing is compiled, so there are no turns, and every step in which nothing is recorded is timed."""

    def __init__(
        self, on_end: Callable[[str, int, bool], None] = lambda kind, number, enough: None, *, observes: bool = False
    ) -> None:
        self._on_end = on_end
        self.observes = observes
        self.turns = Alternation()
        self.windows = ObservedWindows()
        self._cycle = OptimizerCycle()
        self.backward = BackwardClock()
        self.now = StepActivity()
        self.compared = Comparison()  # of whole steps, in seconds
        self.waited: list[tuple[int, float]] = []  # in which step, seconds
        self._before: Comparison | None = None
        self.kinds = bytearray()  # of every step: its place in STEP_KINDS
        self.are_whole = False  # whether they are training steps, with an optimizer's at their end
        self.times = StepTimes(perf_counter())

    @property
    def count(self) -> int:
        return len(self.kinds)

    @property
    def compiled_count(self) -> int:
        return self.kinds.count(STEP_KINDS.index("compiled"))

    @property
    def are_mostly_compiled(self) -> bool:
        """Whether half of the steps, or more, ran compiled; False without steps."""
        return self.count > 0 and 2 * self.compiled_count >= self.count

    @property
    def plain_count(self) -> int:
        return self.kinds.count(STEP_KINDS.index("plain"))

    @property
    def watches_backward(self) -> bool:
        """Whether backward passes are timed now."""
        return self.turns.is_open or (self.observes and len(self.compared.eager) < _SAMPLES)

    @property
    def _is_timed(self) -> bool:
        return self.turns.is_timed or (self.observes and len(self.compared.eager) < _SAMPLES)

    def waited_for(self, seconds: float) -> None:
        """The program has waited, in the current step."""
        self.now.waited += seconds
        if not self.observes:
            self.turns.begin()

    def changed(self) -> None:
        """Other code runs from now on. What is known of the one before holds until enough of it has been timed."""
        if self.observes:
            return
        if self.compared.pairs >= LIMITS.step_pairs:
            self._before = self.compared
        self.compared = Comparison()
        self.turns.begin()

    def stepped(self, optimizer: Hashable = None) -> None:
        """A step has ended, of ``optimizer`` if it trains."""
        now = when_done() if self.watches_backward else perf_counter()
        happened, self.now = self.now, StepActivity()
        seconds = self.times.lap(now) - happened.compared
        kind, waited = happened.kind, happened.waited
        self.kinds.append(STEP_KINDS.index(kind))
        if waited:
            self.waited.append((self.count, waited))
        self.times.add(self.count, seconds, kind)
        self.backward.stepped()
        self._cycle.add(seconds, happened.plain, happened.compiled, waited=bool(waited))
        if self._cycle.ends_with(optimizer):
            self._cycle_ended()

    def _cycle_ended(self) -> None:
        cycle = self._cycle
        kind = cycle.kind if self._is_timed else ""
        if kind:
            timed = self.compared.eager if kind == "plain" else self.compared.compiled
            timed.append(cycle.seconds / cycle.steps)
        number = cycle.steps
        cycle.restart()
        self._on_end(kind, number, self.turns.stepped() or self._is_clear())

    def add_unobserved(self, count: int) -> None:
        """``count`` steps in eager mode that nothing has looked at."""
        seconds = self.times.lap(perf_counter())
        self.kinds.extend(bytes([STEP_KINDS.index("plain")]) * count)
        self._cycle.restart()
        if count:
            self.times.keep(self.count, seconds / count, "plain")

    def _is_clear(self) -> bool:
        """Whether it is known before the end of the window which of the two is faster, and steps are long."""
        compared = self.compared
        return (
            self.turns.is_open
            and min(sum(compared.eager), sum(compared.compiled)) >= LIMITS.long_alternation
            and compared.is_certain
        )

    def interval(self) -> tuple[float, float] | None:
        """Of the speedup of a whole step."""
        return self._timed().interval()

    def medians(self) -> tuple[float, float] | None:
        """Of a plain and of a compiled step; None where too few were timed."""
        return self._timed().medians(LIMITS.step_pairs)

    def plain_median(self) -> float | None:
        """Of a plain step, where nothing may have been compiled. Of a check, which has few steps, one is enough."""
        plain = self._timed().eager
        return median(plain) if len(plain) >= (1 if self.observes else LIMITS.step_pairs) else None

    def _timed(self) -> Comparison:
        return self.compared if self._before is None or self.compared.pairs >= LIMITS.step_pairs else self._before
