"""What findings cost, as far as a clock can show it. Key types: Costs, GapClock; key function: rate.

Three things can be measured without a guess: the time that capturing a region again took beyond one of its usual calls;
where a graph is cut, the time from the end of one graph to the beginning of the next (waiting for the value, deciding); and
the time of seams, which are in no stretch. What compiling would have saved is not known, so findings that keep a region in
eager mode have no cost.
"""

from __future__ import annotations

import threading
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from statistics import median
from time import perf_counter
from typing import TYPE_CHECKING, Any

from magpy_core.findings import Finding, Location, Severity, Value
from magpy_core.limits import LIMITS
from magpy_core.stretches.seam_clock import SeamClock

if TYPE_CHECKING:
    from magpy_core.capture.build import Capture

_KEPT = 256  # timings of one kind
"""The share of a step below which a cost is no reason to change a program: without it, the step would not be measurably
faster, since the medians of whole steps differ by about 1% from run to run."""


@dataclass
class _Recapture:
    """A finding that made a region be captured again, and for each time the call's seconds, the number of findings that
    share them, and the new capture."""

    finding: Finding
    times: list[tuple[float, int, weakref.ref[Capture] | None]] = field(default_factory=list)


class Costs:
    """Kept by a region; ``assign`` writes ``cost_ms`` into its findings when the program has ended."""

    def __init__(self) -> None:
        self._recaptures: dict[int, _Recapture] = {}
        self._usual: deque[float] = deque(maxlen=_KEPT)
        self._gaps: dict[Location, deque[float]] = {}
        self.graphs: deque[tuple[float, float]] = deque(maxlen=_KEPT)
        """When a graph of a call that is cut began and ended, of the calls whose cuts were timed."""

    def usual(self, seconds: float) -> None:
        """A call that captured nothing."""
        self._usual.append(seconds)

    def recaptured(self, causes: Sequence[Finding], seconds: float, capture: Capture | None) -> None:
        """A call that did. Its ``causes`` share the time; compiling the new capture is added at the end."""
        for finding in causes:
            known = self._recaptures.setdefault(id(finding), _Recapture(finding))
            known.times.append((seconds, len(causes), None if capture is None else weakref.ref(capture)))

    def waited(self, gaps: dict[Location, float]) -> None:
        """Seconds that one call spent between its graphs, by the place of the cut."""
        for place, seconds in gaps.items():
            self._gaps.setdefault(place, deque(maxlen=_KEPT)).append(seconds)

    def assign(
        self, findings: Iterable[Finding], measured: Sequence[float], calls: int, steps: int, seams: SeamClock | None = None
    ) -> list[Finding]:
        """The findings whose cost is known now. ``measured``: seconds of compiled calls, where those were timed; ``seams``:
        between the region's stretches."""
        assigned = []
        usual = [*measured] or [*self._usual]
        for known in self._recaptures.values():
            plain = sum(_plain_calls(capture) for _, _, capture in known.times)
            if usual:
                shares = [
                    (max(seconds - median(usual), 0.0) + _compiling(capture)) / among
                    for seconds, among, capture in known.times
                ]
                known.finding.cost_ms = _ms(sum(shares) / len(shares))
            if plain:
                known.finding.values += (Value("calls in eager mode meanwhile", str(plain)),)
            if usual or plain:
                assigned.append(known.finding)
        for finding in findings:
            gaps = self._gaps.get(finding.location, ())
            if finding.code.startswith("MP1") and len(gaps) >= LIMITS.fewest_gaps:
                finding.cost_ms = _ms(median(gaps) * calls / steps if steps else median(gaps))
                assigned.append(finding)
                del self._gaps[finding.location]  # one of a place is enough: the time is the same
        assigned += cost_of_seams(findings, seams, calls / steps if steps else 1.0) if seams is not None else ()
        return assigned


def cost_of_seams(findings: Iterable[Finding], seams: SeamClock, runs_per_step: float = 1.0) -> list[Finding]:
    """Writes what seams cost into what they were refused for: the first of ``findings`` at each. Returns those."""
    assigned, known = [], set()
    for finding in findings:
        places = (finding.location, *finding.path) if finding.code.startswith(("MP1", "MP902", "MP915", "MP916")) else ()
        found = (seams.seam_at(place.file, place.range.start.line + 1) for place in places)
        seam = next((one for one in found if one is not None), None)
        if seam is not None and seam not in known and (seconds := seams.per_run(seam)) is not None:
            known.add(seam)
            finding.cost_ms = _ms(seconds * runs_per_step)
            assigned.append(finding)
    return assigned


def rate(findings: Iterable[Finding], step_ms: float) -> list[Finding]:
    """Makes facts of warnings that cost a negligible share of a step of ``step_ms``, and a warning of a step in parts that
    costs much; returns those. What is measured per occurrence, as recompiles are, has no share of a step."""
    rated = []
    for finding in findings:
        cost = finding.cost_ms
        if cost is None or finding.code.startswith("MP2") or not finding.is_actionable:
            continue
        if cost < LIMITS.negligible_cost * step_ms:
            finding.make_fact(f"this costs {cost:.2g} ms of a step of {step_ms:.3g} ms")
        elif finding.code == "MP406" and cost >= LIMITS.costly_parts * step_ms:
            finding.severity_override = Severity.WARNING
        else:
            continue
        rated.append(finding)
    return rated


def _compiling(reference: weakref.ref[Capture] | None) -> float:
    capture = None if reference is None else reference()
    return (capture.compile_seconds or 0.0) if capture is not None else 0.0


def _plain_calls(reference: weakref.ref[Capture] | None) -> int:
    capture = None if reference is None else reference()
    return capture.plain_calls if capture is not None else 0


def _ms(seconds: float) -> float:
    return round(seconds * 1e3, 4)


class GapClock:
    """To be entered once: within it, calls of ``captures`` whose graph is cut note when their graphs begin and end, which
    `add_to` reads. While one of another thread is entered, this one notes nothing."""

    _one = threading.Lock()

    def __init__(self, captures: Iterable[Capture]) -> None:
        self._is_on = self._one.acquire(blocking=False)
        watched = [capture for capture in captures if len(capture.segments) > 1 and capture.is_ready] if self._is_on else []
        try:
            self._watched = [_Watched(capture) for capture in watched]
        except BaseException:
            self._one.release()
            raise

    def __enter__(self) -> GapClock:
        for watched in self._watched:
            watched.begin()
        return self

    def __exit__(self, *exception: object) -> None:
        for watched in self._watched:
            watched.end()
        if self._is_on:
            self._one.release()

    def add_to(self, costs: Costs) -> None:
        """The time between graphs."""
        for watched in self._watched:
            costs.graphs.extend((start, end) for _, start, end in watched.marks)
            costs.waited(_gaps(watched.capture, watched.marks))


class _Watched:
    """``capture``, which runs as generated (without the fast guard), with the start and end of each graph in ``marks``."""

    def __init__(self, capture: Capture) -> None:
        self.capture = capture
        self.marks: list[tuple[int, float, float]] = []
        self._thread = threading.get_ident()
        self._before = capture.run
        self._run = self._call  # one object, which is found again
        self._graphs = {f"graph{i}": capture.namespace[f"graph{i}"] for i in range(len(capture.segments))}
        self._noted = {name: self._noting(i, graph) for i, (name, graph) in enumerate(self._graphs.items())}

    def begin(self) -> None:
        self.capture.run = self._run

    def end(self) -> None:
        if self.capture.run is self._run:  # or it runs other code meanwhile
            self.capture.run = self._before

    def _call(self, args: Any, kwargs: Any) -> Any:
        names = self.capture.namespace
        names.update(self._noted)
        try:
            return self.capture.full_run(args, kwargs)
        finally:
            names.update(self._graphs)

    def _noting(self, index: int, graph: Callable[..., Any]) -> Callable[..., Any]:
        def call(inputs: list[Any]) -> Any:
            start = perf_counter()
            result = graph(inputs)
            if threading.get_ident() == self._thread:
                self.marks.append((index, start, perf_counter()))
            return result

        return call


def _gaps(capture: Capture, marks: Sequence[tuple[int, float, float]]) -> dict[Location, float]:
    """Seconds between one graph and the next, by the place of the cut; empty for a call that stopped halfway."""
    if [index for index, *_ in marks] != list(range(len(capture.segments))):
        return {}
    gaps: dict[Location, float] = {}
    for (index, _, end), (_, start, _) in pairwise(marks):
        place = capture.cut_at(index)
        if place is not None:
            gaps[place] = gaps.get(place, 0.0) + start - end
    return gaps
