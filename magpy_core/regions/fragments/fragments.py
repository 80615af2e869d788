"""A region that can't be captured whole: its functions are cut, and their stretches are regions in its place.

Where: at the statements that the refused recording, or the branches that took many paths, came from, in each of the
program's functions on the way there. Stretches serve only in calls of the region that they were cut for.
Key type: Stretches.
"""

from __future__ import annotations

import functools
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from types import FunctionType
from typing import Any

from magpy_core._compat.torch.dynamo import dynamo_is_imported, torch_has_compiled
from magpy_core._compat.torch.dynamo_watch import before_first_frame
from magpy_core.capture.build import Capture
from magpy_core.findings import Location
from magpy_core.limits import LIMITS
from magpy_core.monitor.positions import is_user_file
from magpy_core.regions import trial as trials
from magpy_core.regions.lines import line_location
from magpy_core.regions.region import Region
from magpy_core.regions.reports.performance import slower_on_trial
from magpy_core.regions.threads import busy
from magpy_core.regions.timing.alternating_calls import AlternatingCalls
from magpy_core.stretches.cells import Entries, Moved
from magpy_core.stretches.cut_points import may_be_cut, varying
from magpy_core.stretches.functions import Functions, Line
from magpy_core.stretches.originals import restore
from magpy_core.stretches.seam_clock import SeamClock
from magpy_core.stretches.seam_parts import Span, contains
from magpy_core.stretches.stretch import Stretch

_BRANCHES = "MP101"
_NUMBERS = (bool, int, float)
"""What a seam's expression gives that is a decision of the stretch's graph: it is left to the frame."""

#: Called with the region of a new stretch.
Added = Callable[[Region], None]


_all_served: weakref.WeakKeyDictionary[Stretch, list[weakref.ref[_Served]]] = weakref.WeakKeyDictionary()
"""Lists: a thread may go through one while another adds to it."""


class _Active(threading.local):
    stretches: Stretches | None = None


_active = _Active()


class _Receiver:
    """Gets the function of a stretch each time that its statements are to run."""

    def __init__(self, stretch: Stretch) -> None:
        self._stretch = stretch

    def __matmul__(self, function: FunctionType) -> Any:
        stretches = _active.stretches
        if stretches is None or busy():
            return function()
        served = stretches.served_for(self._stretch)
        if served is None:
            return function()
        if not stretches.seams.is_running:
            return served.call(function)
        start = time.perf_counter()
        try:
            return served.call(function)
        finally:
            stretches.seams.ran_other(time.perf_counter() - start)


def _clock() -> SeamClock | None:
    return None if _active.stretches is None or busy() else _active.stretches.seams


_functions = Functions(_Receiver, _clock)


class Stretches:
    """The stretches of one region."""

    def __init__(self, region: Region, added: Added) -> None:
        self._region, self._added = region, added
        self.served: dict[Stretch, _Served] = {}
        self._trial = AlternatingCalls()
        self._calls = 0
        self.seams = SeamClock(lambda: self._calls, self.failed)

    def __call__(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A call of the region."""
        return trials.call(self, self._trial, args, kwargs)

    def decided(self, trial: AlternatingCalls) -> None:
        if not trial.pays and (found := slower_on_trial(self._region, "cut into stretches", trial.compared)):
            self._region.log.add(found)

    def failed(self, error: Exception) -> None:
        self._region.monitor_failed(error)

    def plain(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return self._region.target(*args, **kwargs)

    def compiled(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A call with stretches."""
        if not self._begun():
            return self._region.target(*args, **kwargs)
        before, _active.stretches = _active.stretches, self
        try:
            return self._region.target(*args, **kwargs)
        finally:
            _active.stretches = before
            self._ended()

    def _begun(self) -> bool:
        """Whether functions call stretches from now on, until `_ended`."""
        try:
            if torch_has_compiled():  # the program's torch.compile can't read the code of cut functions
                return False
            _restore_before_first_frame()
            _functions.recut()
            _functions.begin()
        except Exception as error:  # it must never take the program down
            self.failed(error)
            return False
        self._calls += 1
        return True

    def _ended(self) -> None:
        try:
            _functions.end()
        except Exception as error:
            self.failed(error)

    @property
    def pays(self) -> bool | None:
        """Whether the region is no slower with stretches; None: not known yet."""
        return self._trial.pays

    @property
    def timed_seams(self) -> SeamClock | None:
        """None if the region runs in eager mode: then a seam costs what stretches would save, which is not known."""
        return None if self.pays is False else self.seams

    @property
    def regions(self) -> list[Region]:
        """Those of the stretches, except where a stretch runs in eager mode again."""
        all_served = list(self.served.values())  # other threads may add some
        return [entry.region for served in all_served if not served.is_plain for entry in served.entries]

    def lost_one(self) -> None:
        """A stretch runs in eager mode from now on. Whether the others still pay is not known."""
        if self._trial.pays:
            self._trial = AlternatingCalls()

    def served_for(self, stretch: Stretch) -> _Served | None:
        """What serves a stretch; None: an error of ours."""
        try:
            served = self.served.get(stretch)
            if served is None:
                served = self.served[stretch] = _Served(stretch, self)
        except Exception as error:
            self.failed(error)
            return None
        return served

    def make(self, stretch: Stretch, target: FunctionType) -> Region:
        """The region of a stretch."""
        scope = stretch.scope
        name = f"{scope.qualname}:{stretch.where}"
        location = line_location(scope.file, stretch.lines.start, scope.qualname)
        # to cut it, the function that it is in is cut once more
        options = replace(self._region.options, cut=_PlainPython, fullgraph=False, on_trial=False)
        region = Region(name, "stretch", name, location, target, options, self._region.log.listeners)
        self._added(region)
        return region


class _Entry:
    """The region of a stretch, and whether it is worth its calls."""

    def __init__(self, region: Region) -> None:
        self.region = region
        self.is_slower = False
        self._recordings = 0
        self._is_measured = False

    def is_worthless(self) -> bool:
        """After a call: whether the stretch is to run in eager mode."""
        region = self.region
        if region.recordings != self._recordings:
            self._recordings, self._is_measured = region.recordings, False
            region.options = replace(region.options, measure=True)
            if region.captures and all(map(_is_small, region.captures)):
                region.times.tally.given_up = "small"
                return True
        if region.disabled:
            return not region.serves_most
        if not self._is_measured and region.times.is_settled:
            self._is_measured = True
            region.options = replace(region.options, measure=region.options.steps is not None)
            self.is_slower = region.times.is_slower()
            region.times.tally.given_up = "slower" if self.is_slower else ""
            return self.is_slower
        return False


class _Served:
    """What serves one stretch."""

    def __init__(self, stretch: Stretch, stretches: Stretches) -> None:
        self._stretch, self._stretches = stretch, stretches
        self.entries = Entries(stretch.scope.shared, lambda moved: _Entry(stretches.make(stretch, moved.target)))
        self.is_plain = False
        _all_served.setdefault(stretch, []).append(weakref.ref(self))

    def call(self, function: FunctionType) -> Any:
        found = None if self.is_plain else self._entry_of(function)
        if found is None:
            return function()
        moved, entry = found
        backoff = entry.region.policy.backoff
        if backoff.skip():
            return _plain(function, backoff.awaited(), entry.region)
        result = moved.call(function, entry.region)
        try:
            self._returned(entry, result)
        except Exception as error:  # it must never take the program down
            self.is_plain = True
            entry.region.monitor_failed(error)
        return result

    def _entry_of(self, function: FunctionType) -> tuple[Moved, _Entry] | None:
        try:
            return self.entries.of(function)
        except Exception as error:  # it must never take the program down
            self.is_plain = True
            self._stretches.failed(error)
            return None

    def _returned(self, entry: _Entry, result: Any) -> None:
        if self._stretch.value is not None and type(result) in _NUMBERS:
            self.is_plain, entry.region.times.tally.given_up = True, "replaced"
            scope = self._stretch.scope
            _functions.add_seams([], [Line(scope.file, scope.qualname, n) for n in self._stretch.value_lines])
        elif entry.is_worthless():
            self.is_plain = True
            _cut_at(_lines(entry.region), self._stretch)
            if not entry.is_slower and self._is_plain_everywhere():
                _functions.dissolve(self._stretch)  # short statements in a loop would take longer to call than to run
        if self.is_plain:
            self._stretches.lost_one()

    def _is_plain_everywhere(self) -> bool:
        """Whether the stretch runs in eager mode in all regions that it serves."""
        return all((served := one()) is None or served.is_plain for one in _all_served[self._stretch])


def _plain(function: FunctionType, awaited: Capture | None, region: Region) -> Any:
    """A call of a stretch for whose code nothing is to be checked. ``awaited``: the capture that would probably serve it."""
    start = time.perf_counter()
    result = function()
    if awaited is not None:
        try:
            awaited.ran_plain(time.perf_counter() - start)
        except Exception as error:
            region.monitor_failed(error)
    return result


def _is_small(capture: Capture) -> bool:
    return sum(node.op.startswith("call") for node in capture.nodes) < LIMITS.fewest_operators


class _PlainPython:
    """Takes the place of a stretch's captures, which is cut no further by itself."""

    timed_seams = None

    def __init__(self, region: Region) -> None:
        self._region = region

    def __call__(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return self._region.target(*args, **kwargs)


def cut(region: Region, added: Added) -> Stretches | None:
    """Cuts the functions of ``region``, which runs in eager mode. None: there is nothing to cut, or objects with
    finalizers are in it, which a recording of a stretch would keep alive."""
    if torch_has_compiled() or not may_be_cut(region):
        return None
    lines = _lines(region)
    _cut_at(lines)
    return Stretches(region, added) if _functions.are_cut(lines) else None


@functools.cache
def _watch_dynamo() -> None:
    before_first_frame(restore)


def _restore_before_first_frame() -> None:
    """What the program compiles inside a region that is cut finds functions with their own code."""
    if dynamo_is_imported():
        _watch_dynamo()


def _places(region: Region) -> Iterable[Line]:
    """The statements that keep a region from being captured, and those because of which it is captured again and again, with
    the calls on the way there."""
    for finding in region.log.obstacles:
        yield from (_line(place) for place in finding.path if place != finding.location)
        yield _line(finding.location, is_test=finding.code == _BRANCHES)
    yield from map(_line, dict.fromkeys([*varying(region), *region.log.unrolled]))


def _cut_at(lines: Sequence[Line], stretch: Stretch | None = None) -> None:
    """``stretch``: was refused there. It becomes smaller, or what it computes for a seam is the frame's from now on."""
    _functions.add_seams(lines, [line for line in lines if stretch is not None and _is_left(line, stretch)])


def _is_left(line: Line, stretch: Stretch) -> bool:
    """Whether the stretch's value has to be the frame's, since it can't be cut around the line's span."""
    if line.number not in stretch.value_lines or stretch.value is None:
        return False
    return line.span is None or not contains(stretch.value, line.span)


def _lines(region: Region) -> list[Line]:
    return list(dict.fromkeys(line for line in _places(region) if is_user_file(line.file)))


def _line(place: Location, *, is_test: bool = False) -> Line:
    return Line(place.file, place.function, place.range.start.line + 1, span_at(place, is_test=is_test))


def span_at(place: Location, *, is_test: bool = False) -> Span:
    start, end = place.range.start, place.range.end
    return Span(start.line + 1, start.character, end.line + 1, end.character, is_test)
