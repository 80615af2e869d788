"""When a capture's guard may be cut short: its first level (``guards/first_level.py``), begun, ended and begun again.

After two calls that fitted, at the entry of a third, what dict version tags can stand for is surveyed, and a second function
is generated that asks the tags and checks only what is left. When the tags have changed, the full guard decides about that
call, and the first level begins again a little later: sooner if it served well, without what keeps changing if it did not.
Key type: Tagged.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from magpy_core._compat.cpython import dict_tags
from magpy_core._compat.cpython.dict_tags import Unwatchable, Watch, supported
from magpy_core._compat.torch.tensor_guards import mode_depth
from magpy_core.guards.codegen import GuardWriter, inline_single_uses
from magpy_core.guards.first_level import CHANGED, FirstLevel
from magpy_core.refgraph.graph import Read

if TYPE_CHECKING:
    from magpy_core.capture.build import Capture

_SERVED = 16  # calls after which a first level has paid for itself
_LONGEST = 1024  # calls to wait at most before the next attempt
_MOST_MOVED = 64  # more than so many namespaces at once is a switch (``model.eval()``), not a counter


class Tagged:
    """The first level of one capture. Holds no reference to the capture, nor to what the user's objects hold."""

    def __init__(self, capture: Capture, reads: list[Read], miss: Any) -> None:
        self._capture = weakref.ref(capture)
        self._reads, self._miss = reads, miss
        self._volatile: frozenset[str] = frozenset()
        self._wait = self._left = 0 if dict_tags.eagerly() else 2
        self._level: FirstLevel | None = None
        self._watch: Watch | None = None
        self._hits_before = 0
        self._parts: tuple[GuardWriter, list[str], list[str], Callable[[list[str]], str]] | None = None

    def prepare(
        self, writer: GuardWriter, guard: list[str], used_later: list[str], template: Callable[[list[str]], str]
    ) -> None:
        """From what the capture's functions were made: the guard's lines, and what makes functions of other such lines."""
        self._parts = writer, guard, used_later, template

    def begin(self) -> None:
        """From now on: the capture's functions are there."""
        capture = self._capture()
        if capture is not None and self._parts is not None and supported():
            self._full, self._matches = capture.run, capture.matches
            capture.run = self._waiting

    # -- what stands in for the capture's ``run`` ----------------------------------------------------------------

    def _waiting(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if self._left <= 0:
            run = self._arm(args, kwargs)
            if run is not None:
                return run(args, kwargs)
        result = self._full(args, kwargs)
        if result is not self._miss:
            self._left -= 1
        return result

    def _changed(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The first level can't tell whether the capture fits: the full guard can."""
        capture, level, watch = self._capture(), self._level, self._watch
        if capture is None or level is None or watch is None or dict_tags.profiling():
            return self._full(args, kwargs)
        moved = set() if watch.dead else level.moved(watch, args, kwargs)
        served = capture.hits - self._hits_before >= _SERVED
        result = self._full(args, kwargs)
        if served:
            self._wait = min(self._wait, 1)
        elif result is not self._miss:
            self._wait = min(2 * self._wait or 1, _LONGEST) if not dict_tags.eagerly() else 0
            if len(moved) <= _MOST_MOVED:
                self._volatile |= moved
        self._disarm()
        return result

    # -- beginning and ending ------------------------------------------------------------------------------------

    def _disarm(self) -> None:
        capture = self._capture()
        self._left, self._level, self._watch = self._wait, None, None
        if capture is not None:
            capture.run, capture.matches = self._waiting, self._matches

    def _never(self) -> None:
        capture, self._parts = self._capture(), None
        if capture is not None:
            capture.run, capture.matches = self._full, self._matches

    def _arm(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Callable[..., Any] | None:
        """The function with the short guard, if the full one holds now and a first level can begin."""
        capture = self._capture()
        if capture is None or self._parts is None or mode_depth() != (0, 0) or dict_tags.profiling():
            return None
        if not capture.is_ready and (capture.may_specialise or not dict_tags.eagerly()):
            return None  # the backend may still add checks
        if not self._matches(args, kwargs):
            return None
        writer, guard, used_later, template = self._parts
        level = FirstLevel(self._reads, args, kwargs, self._volatile)
        written = level.write(writer, guard, used_later)
        if written is None:
            self._never()
            return None
        me = weakref.ref(self)

        def on_death() -> None:
            tagged = me()
            if tagged is not None:
                tagged._disarm()

        try:
            watch = level.watch(on_death)
        except Unwatchable:
            self._never()
            return None
        level.forget()
        # what was true between two equal looks at the tags is what the tags stand for
        if not self._matches(args, kwargs) or not watch.holds():
            self._left = self._wait
            return None
        lines, fixed = written
        names = {**capture.names, **fixed, "unchanged": watch.holds, "CHANGED": CHANGED}
        names.update(changed=self._changed, matches_full=self._matches)
        exec(compile(template(inline_single_uses(lines, used_later)), f"<{capture.title}>", "exec"), names)
        # taken out of their own namespace: no cycle may keep the fixed tables alive
        capture.run, capture.matches, _, _ = (names.pop(name) for name in ("run", "matches", "run_short", "check"))
        self._level, self._watch, self._hits_before = level, watch, capture.hits
        return capture.run
