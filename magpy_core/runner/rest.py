"""Calls that MagPy does not look at, because they are short, and looking at each would make the program notably slower.

As long as nothing is recorded and no compiled code serves, a few calls are looked at now and then, and the others are taken
to be like them. Where compiled code serves, and steps have not shown that it saves far more, windows of calls that are not
looked at show whether it is worth it. Key type: Rest.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from time import perf_counter
from types import MappingProxyType
from typing import Any, Protocol

from magpy_core.limits import LIMITS
from magpy_core.runner.steps import StepClock

_NONE: Mapping[str, Any] = MappingProxyType({})


class Session(Protocol):
    def end_sample(self) -> bool: ...
    def add_unobserved(self, steps: int, rate: float) -> None: ...
    def begin_window(self, watching: float) -> bool: ...
    def compared(self, compiled: float, plain: float) -> None: ...


class Rest:
    """``left``: calls that are not to be looked at; ``inside``: one of them is running, and what it calls is not looked at
    either. ``session``: None if there may be no rest now."""

    def __init__(self, clock: StepClock, session: Callable[[], Session | None]) -> None:
        self._clock, self._session = clock, session
        self.left = 0
        self.inside = self._is_stepping = self._is_resting = False
        self._calls = self._modules = self._steps = 0
        self._seen, self._since = 0, perf_counter()
        self._until = 0.0  # when the last call that was not looked at returned
        self._steps_before = clock.count
        self._beside: float | None = None  # seconds of a step of the window before, if it is compared

    @property
    def is_on(self) -> bool:
        return self.left > 0 or self.inside

    def call(self, function: Callable[..., Any], args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] = _NONE) -> Any:
        """A call that is not looked at."""
        if self.inside:
            return function(*args, **kwargs)
        self.left -= 1
        self._calls += 1
        self.inside = True
        try:
            return function(*args, **kwargs)
        finally:
            self.inside = False
            if not self.left:
                self._until = perf_counter()

    def call_module(self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        self._modules += not self.inside
        return self.call(function, args, kwargs)

    def step(self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The step of an optimizer, or of one that it wraps."""
        if self._is_stepping:
            return function(*args, **kwargs)
        self._is_stepping = True
        self._steps += 1
        try:
            return self.call(function, args, kwargs)
        finally:
            self._is_stepping = False

    def looked_at(self) -> None:
        """A call has been looked at, and its step has not ended yet."""
        if self._is_resting:
            self.end()
            return
        self._seen += 1
        if self._seen >= LIMITS.discovery_window:
            self._decide()

    def _decide(self) -> None:
        seconds, self._seen = perf_counter() - self._since, 0
        steps = self._clock.count - self._steps_before
        session = self._session()
        share = LIMITS.discovery_window * LIMITS.discovery_cost / max(seconds, 1e-6)
        if session is not None and share > LIMITS.discovery_share:
            if session.end_sample():
                self._begin(
                    min(LIMITS.longest_unwatched, int(LIMITS.discovery_window * LIMITS.discovery_pause / max(seconds, 1e-6)))
                )
            elif steps and share > LIMITS.discovery_served and session.begin_window(share):
                self._beside = seconds / steps
                self._begin(LIMITS.discovery_window)
        self._restart()

    def _begin(self, calls: int) -> None:
        self.left, self._is_resting = calls, True

    def end(self) -> None:
        """Counts the calls that were not looked at."""
        session = self._session()
        if self._is_resting and session is not None:
            self._clock.add_unobserved(self._modules, self._steps)
            steps = self._steps if self._clock.has_optimizer else self._modules
            session.add_unobserved(steps, self._calls / LIMITS.discovery_window)
            if steps and self._beside is not None and self._calls == LIMITS.discovery_window:
                session.compared(self._beside, (self._until - self._since) / steps)
        self.left = self._calls = self._modules = self._steps = self._seen = 0
        self._is_resting, self._beside = False, None
        self._restart()

    def _restart(self) -> None:
        self._since, self._steps_before = perf_counter(), self._clock.count
