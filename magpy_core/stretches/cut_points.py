"""Where a region that can't serve as a whole is cut: step bodies, step functions and stretches ask here.

A region is cut at the statements that it was refused for, and at those because of which it is captured again and again.
Key types: CutPoints; key functions: may_be_cut, varying.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Protocol

from magpy_core.limits import LIMITS

_LIFETIMES = "MP110"  # of objects with finalizers, which a recording of a part would keep alive


class Log(Protocol):
    """``obstacles``: findings of what a region was refused for; ``varied``: how often it was captured because of a place."""

    @property
    def obstacles(self) -> Sequence[Any]: ...
    @property
    def varied(self) -> Mapping[Any, int]: ...


class Cuttable(Protocol):
    """A region. ``disabled``: why nothing more is recorded."""

    @property
    def log(self) -> Log: ...
    @property
    def recompiles(self) -> Sequence[Any]: ...
    @property
    def disabled(self) -> str: ...


def may_be_cut(region: Cuttable) -> bool:
    """Whether parts of what ``region`` runs may be recorded by themselves."""
    return all(finding.code != _LIFETIMES for finding in region.log.obstacles)


def varying(region: Cuttable, statement_of: Callable[[Any], Any] = lambda place: place) -> Iterator[Any]:
    """What ``region`` was captured for so often that it is worth no more captures, of the statements of the places."""
    at: Counter[Any] = Counter()
    for place, number in region.log.varied.items():
        if place is not None and (statement := statement_of(place)) is not None:
            at[statement] += number
    return (statement for statement, number in at.items() if number >= LIMITS.captures_for_one_statement)


class CutPoints:
    """Those of one region in the ``lines`` of a ``file``. ``statement_of``: the first line of the statement at a line."""

    def __init__(
        self, region: Cuttable, file: str, lines: range, statement_of: Callable[[int], int] = lambda line: line
    ) -> None:
        self._region, self._file, self._lines, self._statement_of = region, file, lines, statement_of
        self._known = 0

    def obstacles(self) -> dict[int, Any]:
        """The first finding for each of the lines, or for what they call."""
        found: dict[int, Any] = {}
        for finding in self._region.log.obstacles:
            numbers = (self._line(place) for place in [*finding.path, finding.location])
            line = next((number for number in numbers if number is not None), None)
            if line is not None:
                found.setdefault(line, finding)
        return found

    def varying(self) -> list[int]:
        """The lines of statements because of which the region is captured again and again; none, if that is no news."""
        known = len(self._region.recompiles) + bool(self._region.disabled)  # one that is given up instead is not among them
        if known == self._known:
            return []
        self._known = known
        return list(varying(self._region, self._statement))

    def _statement(self, place: Any) -> int | None:
        line = self._line(place)
        return None if line is None else self._statement_of(line)

    def _line(self, place: Any) -> int | None:
        """The 1-based line of a place, if it is one of the lines."""
        line = int(place.range.start.line) + 1
        return line if place.file == self._file and line in self._lines else None


class StepCut:
    """Cuts what a step's region runs, which is ``trial``'s, once it is refused, or captured again and again because of one
    statement: what is left that runs a whole step is to be a region in its place. ``clock``: gets the times of the rest."""

    def __init__(self, trial: Any, points: CutPoints, clock: Any) -> None:
        self._trial, self._points, self._clock = trial, points, clock

    def code(self, without: Callable[[Sequence[int]], Any], blocking: Callable[[dict[int, Any]], Any]) -> Any:
        """The code that takes the region's place, if that is news; None: it stays as it is. ``without``: makes code that
        leaves out the statements at some lines; None if no whole step is left then. ``blocking``: of what the region was
        refused for, what is reported if it can't be cut."""
        lines = self._points.varying()
        is_refused = self._trial.is_refused
        obstacles = self._points.obstacles() if is_refused else {}
        may = not is_refused or may_be_cut(self._trial.region)
        made = without([*obstacles, *lines]) if (obstacles or lines) and may else None
        if made is not None:
            self._clock.clock = self._trial.end()
        elif is_refused:
            self._trial.give_up(blocking(obstacles))
        return made
