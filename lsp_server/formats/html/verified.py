"""The chapter on `run --verify`: a table, and how far compiled code was from eager mode over the steps. Key function:
chapter."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape

from lsp_server.formats import verified
from lsp_server.formats.html.table import table
from lsp_server.formats.view import clean
from magpy_core.findings import Compared, RegionSummary, Report

_WIDE, _HIGH, _LEFT, _RIGHT, _TOP, _BOTTOM = 1100, 220, 70, 30, 16, 34
_LOWEST = 1e-9  # of the axis; what is equal lies there
_ENDLESS = 1e300  # a report's JSON has no infinite number


def chapter(report: Report) -> str:
    """Empty if nothing was compared but the first calls, and these were right, unless they had to give the same bits."""
    regions = verified.compared(report)
    if not regions:
        alone = verified.numerics(report)
        return f"<h2 id='verified'>Verified</h2><p class='soft'>{escape(alone)}</p>" if alone else ""
    head = "<th>region</th>" + "".join(f"<th class='number'>{name}</th>" for name in verified.HEAD)
    rows = [_row(region) for region in regions]
    said = ("Difference: of an element, as a part of the largest element of its tensor.", verified.numerics(report))
    explanation = escape(" ".join(filter(None, said)))
    drawn = "".join(map(_picture, regions))
    return f"<h2 id='verified'>Verified</h2>{table(head, rows)}<p class='soft'>{explanation}</p>{drawn}"


def _row(region: RegionSummary) -> str:
    why = "".join(f"<br><span class='soft'>{escape(reason)}</span>" for reason in verified.reasons(region))
    numbers = "".join(f"<td class='number'>{cell}</td>" for cell in verified.cells(region))
    return f"<tr><td><b>{escape(clean(region.name))}</b>{why}</td>{numbers}</tr>"


def _picture(region: RegionSummary) -> str:
    """The differences over the steps, on a logarithmic axis: growing ones show before they are errors. Below, the losses of
    these calls in eager mode (large dots) and by compiled code (small ones)."""
    samples = [one for one in region.samples if not one.unchecked]
    if not samples:
        return ""
    name = escape(clean(region.name))
    return f"<h3>{name}</h3>{_differences(samples, name)}{_losses(samples, name)}"


def _differences(samples: Sequence[Compared], name: str) -> str:
    low, high = math.log10(_LOWEST), max(0.0, *(math.log10(max(one.apart, _LOWEST)) for one in samples))
    axes = _Axes(samples[0].step, samples[-1].step, low, min(high, 3.0))  # what is not finite
    worst = max(one.apart for one in samples)
    label = f"Largest difference from eager mode in {len(samples):,} calls of {name}: {worst:.1e}"
    marks = [(float(power), f"1e{power}") for power in range(math.ceil(low), math.floor(axes.high) + 1, 3)]
    points = [
        _point("step-waited" if one.is_difference else "step-compiled", axes.x(one.step),
               axes.y(math.log10(max(one.apart, _LOWEST))), f"step {one.step:,}: {one.apart:.1e}")
        for one in samples
    ]  # fmt: skip
    return _drawn(axes, marks, points, label)


def _losses(samples: Sequence[Compared], name: str) -> str:
    """Empty if the calls compute no loss."""
    known = [
        (one.step, one.loss, one.compiled_loss) for one in samples if one.loss is not None and one.compiled_loss is not None
    ]
    if not known:
        return ""
    values = [value for _, *both in known for value in both if abs(value) < _ENDLESS]
    low, high = min(values, default=0.0), max(values, default=1.0)
    axes = _Axes(known[0][0], known[-1][0], low, high if high > low else low + 1.0)
    points = []
    for step, eager, compiled in known:
        title = f"step {step:,}: loss {eager:.6g} in eager mode, {compiled:.6g} compiled"
        points.append(_point("step-plain", axes.x(step), axes.y(eager), title, 5))
        points.append(_point("step-compiled", axes.x(step), axes.y(compiled), title))
    label = (
        f"Losses of {len(known):,} calls of {name}, in eager mode and compiled: from {known[0][1]:.4g} to {known[-1][1]:.4g}"
    )
    note = "<p class='soft'>Losses of the same calls: large dots in eager mode, small ones compiled.</p>"
    return note + _drawn(axes, [(value, f"{value:.3g}") for value in dict.fromkeys((axes.low, axes.high))], points, label)


@dataclass(frozen=True)
class _Axes:
    """From step ``first`` to ``last``, and from ``low`` to ``high``, as places in a picture."""

    first: int
    last: int
    low: float
    high: float

    def x(self, step: int) -> float:
        return _LEFT + (step - self.first) / max(self.last - self.first, 1) * (_WIDE - _LEFT - _RIGHT)

    def y(self, value: float) -> float:
        at = min(max(value, self.low), self.high)
        return _HIGH - _BOTTOM - (at - self.low) / (self.high - self.low) * (_HIGH - _TOP - _BOTTOM)


def _point(style: str, x: float, y: float, title: str, radius: int = 3) -> str:
    return f"<circle class='{style}' cx='{x:.1f}' cy='{y:.1f}' r='{radius}'><title>{title}</title></circle>"


def _drawn(axes: _Axes, marks: Iterable[tuple[float, str]], points: Iterable[str], label: str) -> str:
    parts = [f"<svg width='{_WIDE}' height='{_HIGH}' viewBox='0 0 {_WIDE} {_HIGH}' role='img' aria-label='{label}'>"]
    for value, text in marks:
        at = axes.y(value)
        parts.append(f"<line class='grid' x1='{_LEFT}' x2='{_WIDE - _RIGHT}' y1='{at:.1f}' y2='{at:.1f}'/>")
        parts.append(f"<text class='small' x='{_LEFT - 8}' y='{at + 4:.1f}' text-anchor='end'>{text}</text>")
    ends = ((axes.first, "start"), (axes.last, "end")) if axes.last > axes.first else ((axes.first, "start"),)
    for step, anchor in ends:
        at = axes.x(step)
        parts.append(f"<text class='small' x='{at:.1f}' y='{_HIGH - 12}' text-anchor='{anchor}'>step {step:,}</text>")
    return f"<div class='scroll'>{''.join([*parts, *points])}</svg></div>"
