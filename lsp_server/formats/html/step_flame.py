"""One step as it ran, as SVG: calls of regions, nested by time, their graphs, and Python between.

Key functions: picture, steps_of. A step here reaches from the end of one call to the end of the next call of the region that
ends a step: an optimizer, else the body of a training loop, else what is called most. It is a step of the run, of median
length, not a median of its parts; or one close to that, if only there the graphs of a call that is cut were timed.
The report does not tell threads apart: a call in another thread counts as inside a call that spans it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from html import escape
from itertools import pairwise

from lsp_server.formats.step_text import milliseconds
from lsp_server.formats.view import clean, count, shorten
from magpy_core.findings import Report
from magpy_core.findings.details import Call, GraphCall

_WIDE, _LEFT, _BAR, _TOP = 1100, 10, 26, 8
_CHARACTER = 7.0  # units of the picture, on average
_COLORS = 6
_KINDS = {"compiled": {"replayed"}, "eager": {"plain", "watched"}}
_A = {"compiled": "A compiled", "eager": "An eager"}
_ENDING = ("optimizer", "step", "function", "module", "stretch")
"""Kinds of regions, by how surely the end of a call is the end of a step."""
_SLACK = 1e-7  # seconds by which clocks of a caller and of what it calls may differ
_CLOSE = 0.25  # of the median: so close to it is a step whose graphs were timed, if it is shown instead


@dataclass(frozen=True)
class Span:
    """A call, how many others it is inside, and its graphs if they were timed."""

    call: Call
    depth: int
    graphs: tuple[GraphCall, ...] = ()

    @property
    def end(self) -> float:
        return self.call.start + self.call.seconds


@dataclass(frozen=True)
class Step:
    """``number``: of the call that ends it, from 1."""

    number: int
    begin: float
    end: float
    spans: tuple[Span, ...]

    @property
    def seconds(self) -> float:
        return self.end - self.begin

    @property
    def has_graphs(self) -> bool:
        return any(span.graphs for span in self.spans)

    @property
    def outermost(self) -> list[Span]:
        return [span for span in self.spans if span.depth == 0]

    def ran(self, hows: Iterable[str]) -> bool:
        return all(span.call.how in hows for span in self.outermost)


def picture(report: Report) -> str:
    """Empty without the times of two calls of one region."""
    ending, steps = steps_of(report)
    drawn = []
    for kind, hows in _KINDS.items():
        of_kind = sorted((step for step in steps if step.ran(hows)), key=lambda step: step.seconds)
        if of_kind:
            drawn.append((kind, of_kind, _typical(of_kind)))
    if not drawn:
        return ""
    names = {region.id: clean(region.name) for region in report.regions}
    graphs = {region.id: region.graphs for region in report.regions}
    styles = _styles([step for *_, step in drawn])
    scale = (_WIDE - 2 * _LEFT) / max(step.seconds for *_, step in drawn)
    parts = ["<h3>A step as it ran</h3>"]
    for kind, of_kind, step in drawn:
        median = of_kind[len(of_kind) // 2]
        which = "the median" if step is median else f"close to the median, {milliseconds(median.seconds * 1e3)} ms,"
        up_to = f"up to call {step.number:,} of"
        what = f"{_A[kind]} step, {milliseconds(step.seconds * 1e3)} ms: {which} of {len(of_kind):,}, {up_to} "
        drawing = _drawing(kind, step, _Names(names, graphs), styles, scale)
        parts.append(f"<p>{what}{escape(names.get(ending, ending))}</p>{drawing}")
    inside = "In grey: Python outside regions, with data loading and backward passes. "
    timed = (
        "Inside a call that is cut: its graphs, and between them what Python waits for. "
        if any(step.has_graphs for *_, step in drawn)
        else ""
    )
    note = f"{inside}{timed}Guards, and the graph of a call that is not cut, are not timed one by one."
    return f"{''.join(parts)}<p class='soft'>{note}</p>"


def _typical(of_kind: Sequence[Step]) -> Step:
    """Of steps sorted by length: the middle one, or the closest to it whose graphs were timed."""
    median = of_kind[len(of_kind) // 2]
    close = [step for step in of_kind if step.has_graphs and abs(step.seconds - median.seconds) <= _CLOSE * median.seconds]
    return min(close, key=lambda step: abs(step.seconds - median.seconds), default=median)


def steps_of(report: Report) -> tuple[str, list[Step]]:
    """The id of the region that ends a step, and the steps. Empty for several programs, whose clocks differ."""
    calls = report.details.calls if report.details is not None else []
    if len({region.entrypoint for region in report.regions}) > 1:
        return "", []
    spans = list(_nested(calls))
    kinds = {region.id: region.kind for region in report.regions}
    numbers: dict[str, int] = {}
    for span in spans:
        if span.depth == 0 and kinds.get(span.call.region) in _ENDING:
            numbers[span.call.region] = numbers.get(span.call.region, 0) + 1
    repeated = [region for region, number in numbers.items() if number > 1]
    if not repeated:
        return "", []
    rank = {region: _ENDING.index(kinds[region]) for region in repeated}
    # Of several optimizers, the one that steps least: each of its steps then holds those of the others.
    ending = min(repeated, key=lambda region: (rank[region], numbers[region] * (1 if rank[region] == 0 else -1)))
    timed = report.details.graphs if report.details is not None else []
    return ending, list(_steps([_with_graphs(span, timed) for span in spans], ending))


def _nested(calls: Iterable[Call]) -> Iterator[Span]:
    """In the order of their starts; an outer call before those inside."""
    outer: list[Call] = []
    for call in sorted(calls, key=lambda call: (call.start, -call.seconds)):
        while outer and outer[-1].start + outer[-1].seconds < call.start + call.seconds - _SLACK:
            outer.pop()
        yield Span(call, len(outer))
        outer.append(call)


def _with_graphs(span: Span, timed: Iterable[GraphCall]) -> Span:
    inside = (g for g in timed if g.region == span.call.region and span.call.start <= g.start < span.end)
    return replace(span, graphs=tuple(sorted(inside, key=lambda graph: graph.start)))


def _steps(spans: Sequence[Span], ending: str) -> Iterator[Step]:
    ends = [(n, span) for n, span in enumerate(spans) if span.call.region == ending and span.depth == 0]
    for number, ((first, before), (last, end)) in enumerate(pairwise(ends), 2):
        after = next((n for n in range(last + 1, len(spans)) if spans[n].depth == 0), len(spans))
        within = tuple(span for span in spans[first + 1 : after] if span.call.start >= before.end - _SLACK)
        yield Step(number, before.end, end.end, within)


def _styles(steps: Iterable[Step]) -> dict[str, str]:
    """A color for each region, the same in all pictures, the largest first."""
    times: dict[str, float] = {}
    for step in steps:
        for span in step.spans:
            times[span.call.region] = times.get(span.call.region, 0.0) + span.call.seconds
    largest = sorted(times, key=lambda region: -times[region])
    return {region: f"part{place}" if place < _COLORS else "others" for place, region in enumerate(largest)}


@dataclass(frozen=True)
class _Names:
    """Of regions, by id; ``graphs``: how many a call runs at most."""

    regions: Mapping[str, str]
    graphs: Mapping[str, int]

    def of(self, call: Call) -> str:
        return self.regions.get(call.region, call.region)

    def note(self, call: Call) -> str:
        """Where a call's graphs were not timed, how many it has."""
        number = self.graphs.get(call.region, 0)
        return f", up to {count(number, 'graph')}" if call.how == "replayed" and number > 1 else ""


def _drawing(kind: str, step: Step, names: _Names, styles: Mapping[str, str], scale: float) -> str:
    depth = max(span.depth + bool(span.graphs) for span in step.spans)
    height = _TOP * 2 + _BAR * (2 + depth)
    label = escape(_words(kind, step, names), quote=True)
    parts = [f"<svg width='{_WIDE}' height='{height}' viewBox='0 0 {_WIDE} {height}' role='img' aria-label='{label}'>"]
    whole = f"{kind} step"
    parts.append(_block(whole, step.seconds, "unassigned", _LEFT, _TOP, scale))
    for begin, end in _gaps(step):
        parts.append(_block("Python", end - begin, "rest", _LEFT + (begin - step.begin) * scale, _TOP + _BAR, scale))
    for span in step.spans:
        x, y = _LEFT + (span.call.start - step.begin) * scale, _TOP + (1 + span.depth) * _BAR
        style, note = styles[span.call.region], "" if span.graphs else names.note(span.call)
        parts.append(_block(names.of(span.call), span.call.seconds, style, x, y, scale, note))
        for number, graph in enumerate(span.graphs, 1):
            x = _LEFT + (graph.start - step.begin) * scale
            parts.append(
                _block(f"graph {number} of {len(span.graphs)}", graph.seconds, f"{style} graph", x, y + _BAR, scale)
            )
    return f"<div class='scroll'>{''.join(parts)}</svg></div>"


def _gaps(step: Step) -> Iterator[tuple[float, float]]:
    """From each outermost call to the next."""
    at = step.begin
    for span in step.outermost:
        if span.call.start > at:
            yield at, span.call.start
        at = max(at, span.end)


def _block(name: str, seconds: float, style: str, x: float, y: int, scale: float, note: str = "") -> str:
    wide = max(seconds * scale, 0.5)
    text = f"{name}: {milliseconds(seconds * 1e3)} ms{note}"
    shown = shorten(text, int(wide / _CHARACTER)) if wide > 6 * _CHARACTER else ""
    written = f"<text class='in-{style}' x='{x + 5:.1f}' y='{y + 17}'>{escape(shown)}</text>" if shown else ""
    return (
        f"<g><title>{escape(text)}</title><rect class='flame {style}' x='{x:.1f}' y='{y}' width='{wide:.1f}' "
        f"height='{_BAR - 2}'/>{written}</g>"
    )


def _words(kind: str, step: Step, names: _Names) -> str:
    """The picture in words, for screen readers."""
    said = [f"{_A[kind]} step of {milliseconds(step.seconds * 1e3)} ms with {count(len(step.spans), 'call')}"]
    said += [
        f"{names.of(span.call)} from {milliseconds((span.call.start - step.begin) * 1e3)} ms on, "
        f"for {milliseconds(span.call.seconds * 1e3)} ms"
        + (f", inside {count(span.depth, 'other')}" if span.depth else "")
        + _graphs_in_words(span.graphs)
        for span in step.spans[:40]
    ]
    return "; ".join(said)


def _graphs_in_words(graphs: Sequence[GraphCall]) -> str:
    times = ", ".join(milliseconds(graph.seconds * 1e3) for graph in graphs)
    return f", in {count(len(graphs), 'graph')} of {times} ms" if graphs else ""
