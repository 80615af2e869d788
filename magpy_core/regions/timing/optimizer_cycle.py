"""Steps that belong together: in a program with several optimizers, those up to the next step of the same one.

The steps of a discriminator and of a generator take different times, so that a plain one of one and a compiled one of the
other prove nothing. Key type: OptimizerCycle.
"""

from __future__ import annotations

import itertools
from collections import Counter, deque
from collections.abc import Hashable

_LATEST = 16  # steps that show which optimizers there are


class OptimizerCycle:
    """The current one: ``steps`` that it has had, and their ``seconds``; how many calls of regions with compiled code ran
    as ``plain`` Python and ``compiled`` in it; ``waited``: whether the program did."""

    def __init__(self) -> None:
        self._optimizers: deque[Hashable] = deque(maxlen=_LATEST)
        self._last: Hashable = None  # the optimizer whose step ends it
        self.restart()

    def restart(self) -> None:
        self.steps = self.plain = self.compiled = 0
        self.seconds, self.waited = 0.0, False

    @property
    def kind(self) -> str:
        """Empty: of both kinds, or the program waited."""
        if self.waited or (self.plain and self.compiled):
            return ""
        return "compiled" if self.compiled else "plain"

    def add(self, seconds: float, plain: int, compiled: int, *, waited: bool) -> None:
        self.steps += 1
        self.seconds += seconds
        self.plain += plain
        self.compiled += compiled
        self.waited = self.waited or waited

    def ends_with(self, optimizer: Hashable) -> bool:
        """A step of ``optimizer`` has ended."""
        latest = self._optimizers
        latest.append(optimizer)
        if optimizer != self._last and self._is_gone():
            latest = deque((one for one in latest if one != self._last), maxlen=_LATEST)
            self._optimizers = latest
        number = latest.count(self._last)
        if number < len(latest):
            often = [(count, one) for one, count in Counter(latest).items() if count > 1]
            rarest = min(often, key=lambda pair: pair[0], default=(1, optimizer))
            if not number or 2 * rarest[0] < number:
                self._last = rarest[1]
        return optimizer == self._last

    def _is_gone(self) -> bool:
        """Whether the optimizer that has ended cycles takes no more steps, as when a region runs them from now on."""
        at = [number for number, one in enumerate(self._optimizers) if one == self._last]
        longest = max((after - before for before, after in itertools.pairwise(at)), default=1)
        return bool(at) and len(self._optimizers) - 1 - at[-1] > 2 * longest
