"""The settings of a capture. Key types: Settings, Differences."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from magpy_core.backends.tuning import DEFAULT, Tuning
from magpy_core.verification.beside import Tracings
from magpy_core.verification.plan import NOTHING, Plan


@dataclass(frozen=True)
class Differences:
    """What follows from comparing code with eager mode. ``tracings``: look for the cause of a difference; ``on_wrong``:
    called with the WrongResult of better code, which is not used; ``on_verified``: called with the seconds that a comparison
    took; ``on_sampled``: with those of a later call, of which no other time may have them; ``on_granted``: with those that
    the program has waited for a compilation that was granted them."""

    tracings: Tracings | None = None
    on_wrong: Callable[[Any], None] = lambda failure: None
    on_verified: Callable[[float], None] = lambda seconds: None
    on_sampled: Callable[[float], None] = lambda seconds: None
    on_granted: Callable[[float], None] = lambda seconds: None


@dataclass(frozen=True)
class Settings:
    """One call signature (``n_args`` positional arguments and these keywords) and one backend. ``background``: its graphs
    are compiled in the background while calls run in eager mode. ``affords``: whether the program can spend so many
    seconds on loading compiled code now, whose calls have taken so many (it may be able to later). ``is_worthwhile``:
    whether to compile a capture whose plain calls have taken so many seconds, given those that have passed since it was
    recorded. ``verify``: the calls of compiled code that are compared with eager mode. ``step``: the program's.
    ``is_known_slower``: whether the last run has shown that code of a graph, by the key it is stored as, is
    slower than eager mode. ``on_compiling``: called with ``region_id`` before a graph is compiled here and now, and with
    an empty text after that."""

    region_id: str
    n_args: int
    kwarg_names: tuple[str, ...]
    backend: str
    same_random: bool = False
    background: bool = False
    tuning: Tuning = DEFAULT
    affords: Callable[[float, float], bool] = lambda seconds, plain_seconds: True
    is_worthwhile: Callable[[float, float], bool] = lambda seconds, elapsed: True
    verify: Plan = NOTHING
    differences: Differences = Differences()
    step: Callable[[], int] = lambda: 0
    is_known_slower: Callable[[str], bool] = lambda key: False
    on_compiling: Callable[[str], None] = lambda region_id: None

    @property
    def tunings(self) -> tuple[Tuning, ...]:
        """The tunings that each graph is compiled with, one after the other, the fastest compilation first."""
        return self.tuning.stages if self.background else (self.tuning,)
