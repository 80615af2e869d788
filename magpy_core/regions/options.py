"""Options: how regions run. Key type: Options."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from magpy_core.backends.tuning import DEFAULT, Tuning
from magpy_core.regions.budget.budget import Budget
from magpy_core.regions.timing.steps import Steps
from magpy_core.verification.beside import Tracings
from magpy_core.verification.plan import Plan


@dataclass
class Options:
    """How regions run. ``mode``: ``observe`` (results always come from eager mode) or ``compiled``. ``background``: what
    Inductor compiles is compiled beside the program. ``budget``: bounds what recordings cost. ``steps``: the program's.
    ``on_compiling``: called with a region's id before the program waits for a compiler, and with an empty text after that.
    ``on_left``: called with a region after each of its calls that returned.
    ``on_trial``: without ``measure``, captures are timed against eager mode until it is known which is faster.
    ``cut``: given a region that can't be captured whole, cuts its functions into stretches, or returns None.
    ``verify``: the calls of compiled code that are compared with eager mode. ``tracings``: as in `Settings`.
    ``dynamic``: whether sizes vary from the first call on (True), never (False), or once they have varied (None)."""

    mode: str = "compiled"
    backend: str = "inductor"
    cache_limit: int = 8
    fullgraph: bool = False
    measure: bool = False
    same_random: bool = False
    background: bool = False
    budget: Budget | None = None
    steps: Steps | None = None
    tuning: Tuning = DEFAULT
    dynamic: bool | None = None
    on_trial: bool = False
    on_left: Callable[[Any], None] | None = None
    on_compiling: Callable[[str], None] = lambda region_id: None
    cut: Callable[[Any], Any] | None = None
    tracings: Tracings | None = None
    verify: Plan = field(default_factory=lambda: Plan.parse("first"))
