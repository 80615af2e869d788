"""Fast guard: skips the full guard while dict version tags are unchanged (its first level: ``guards/first_level.py``).

At the third call that fits, FastGuard determines which reads the tags cover, and generates a second function that compares
the tags and checks only the remaining reads. When the tags have changed, the full guard decides about that call, and the
fast guard is armed again later: sooner if it was useful, and without the namespaces that keep changing if it was not.
Key type: FastGuard.
"""

from __future__ import annotations

import math
import weakref
from collections.abc import Callable
from typing import Any, Protocol

from magpy_core._compat.cpython import dict_tags
from magpy_core._compat.cpython.dict_tags import Unwatchable, Watch, supported
from magpy_core._compat.torch.tensor_guards import mode_depth
from magpy_core.capture.code import CodeWriter
from magpy_core.capture.outcome import MISS
from magpy_core.guards.first_level import CHANGED, FirstLevel
from magpy_core.limits import LIMITS
from magpy_core.recording.trace import Trace


def _nothing() -> None:
    """Replaces the weak reference of a retired fast guard."""


class Guarded(Protocol):
    """A capture with a fast guard, which selects the guard's ``run`` and ``matches`` whenever these have changed."""

    trace: Trace
    title: str
    namespace: dict[str, Any]
    hits: int
    matches: Callable[[Any, Any], bool]

    def select(self) -> None: ...
    @property
    def is_ready(self) -> bool: ...
    @property
    def is_final(self) -> bool: ...


class FastGuard:
    """The fast guard of one capture, whose calls go to ``run``; ``full`` is the function with the full guard. Holds no
    strong reference to the capture or to the program's objects."""

    def __init__(
        self,
        capture: Guarded,
        full: Callable[[Any, Any], Any],
        write: Callable[[FirstLevel], CodeWriter],
        *,
        may_specialize: bool,
    ) -> None:
        self._write, self._may_specialize = write, may_specialize
        self._capture: Callable[[], Guarded | None] = weakref.ref(capture)
        self._reads = capture.trace.refgraph.reads
        self.full = self.run = full
        self.matches = self._matches = capture.matches
        self._volatile: frozenset[str] = frozenset()
        self._wait = 0 if dict_tags.eagerly() else 2  # calls before it is armed; `_left`: how many of them remain
        self._left: float = self._wait
        self._level: FirstLevel | None = None
        self._watch: Watch | None = None
        self._hits_before = 0
        # random numbers are drawn before anything is checked, and caches count what is looked up in them
        if not (capture.trace.draws or capture.trace.counts) and supported():
            self.run = self._waiting

    # -- what stands in for the capture's ``run`` ----------------------------------------------------------------

    def _waiting(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if self._left <= 0:
            run = None
            try:
                run = self._arm(args, kwargs)
            except Exception:  # it only saves time: continue with the full guard
                self._left = math.inf
            if run is not None:
                return run(args, kwargs)
        result = self.full(args, kwargs)
        if result is not MISS:
            self._left -= 1
        return result

    def _changed(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A tag has changed: the full guard decides whether the capture fits."""
        capture, level, watch = self._capture(), self._level, self._watch
        moved: set[str] | None = None
        try:
            if capture is not None and level is not None and watch is not None and not dict_tags.profiling():
                moved = set() if watch.dead else level.changed_paths(watch, args, kwargs)
                self._disarm()  # before any code of the program runs, so that only our own errors are caught
        except Exception:
            moved, self._left = None, math.inf
        if capture is None or moved is None:
            return self.full(args, kwargs)
        served = capture.hits - self._hits_before >= LIMITS.fast_guard_pays
        result = self.full(args, kwargs)
        if served:
            self._wait = min(self._wait, 1)
        else:  # also if it does not fit: other captures serve, or other objects at each call
            self._wait = min(2 * self._wait or 1, LIMITS.fast_guard_wait) if not dict_tags.eagerly() else 0
            if result is not MISS and len(moved) <= LIMITS.fast_guard_moved:
                self._volatile |= moved
        self._left = self._wait
        return result

    # -- arming ------------------------------------------------------------------------------------

    def retire(self) -> None:
        """From now on, the capture uses its full guard."""
        self._disarm(for_good=True)
        self._capture = _nothing

    def _disarm(self, *, for_good: bool = False) -> None:
        capture = self._capture()
        self._left, self._level, self._watch = self._wait, None, None
        if capture is not None:
            self.run, self.matches = self.full if for_good else self._waiting, self._matches
            capture.select()

    def _arm(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Callable[..., Any] | None:
        """The function with the short guard, if the full guard holds now and the tags cover enough of it."""
        capture = self._capture()
        if capture is None or mode_depth() != (0, 0) or dict_tags.profiling():
            return None
        if not capture.is_ready and not dict_tags.eagerly():
            return None
        if self._may_specialize and not capture.is_final:
            return None  # the backend may still add checks, which the copied names would lack
        if not self._matches(args, kwargs):
            return None
        level = FirstLevel(self._reads, args, kwargs, self._volatile)
        if not level.is_worthwhile:
            self._disarm(for_good=True)
            return None
        code = self._write(level)
        me = weakref.ref(self)

        def on_death() -> None:
            if (fast_guard := me()) is not None:
                fast_guard._disarm()

        try:
            watch = level.watch(on_death)
        except Unwatchable:
            self._disarm(for_good=True)
            return None
        # the guard held between two equal readings of the tags, so the tags stand for it
        if not self._matches(args, kwargs) or not watch.holds():
            self._left = self._wait
            return None
        names = {**capture.namespace, **code.names, "unchanged": watch.holds, "CHANGED": CHANGED}
        names.update(changed=self._changed, matches_full=self._matches)
        exec(compile(code.lines.fast_functions(), f"<{capture.title}>", "exec"), names)
        # remove the functions from their own globals: a reference cycle would keep the constant tables alive
        self.run, self.matches, _, _ = (names.pop(name) for name in ("run", "matches", "run_short", "check"))
        self._level, self._watch, self._hits_before = level, watch, capture.hits
        capture.select()
        return self.run
