"""Single steps over the run as SVG: how long each took, and how it ran. Key function: picture.

Each kind of step has a color and a shape. The time axis is logarithmic if a wait would flatten everything else.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from lsp_server.formats.step_text import milliseconds
from magpy_core.findings import StepReport, StepSample

KINDS = {
    "plain": "eager mode",
    "compiled": "compiled",
    "mixed": "partly compiled",
    "waited": "waited for a recording or for compiled code",
}
_SHAPES = {  # around 0,0
    "plain": "M-3.5,0a3.5,3.5 0 1,0 7,0a3.5,3.5 0 1,0 -7,0z",
    "compiled": "M-3,-3h6v6h-6z",
    "mixed": "M0,-4l4,7h-8z",
    "waited": "M0,-5l4,5l-4,5l-4,-5z",
}
_WIDE, _HIGH, _LEFT, _RIGHT, _TOP, _BOTTOM = 1100, 250, 70, 130, 26, 34
_DRAWN = 2000
_LOGARITHMIC = 8  # if the longest step takes so many medians, a linear axis hides the difference of plain and compiled


@dataclass(frozen=True)
class _Axes:
    first: int
    last: int
    low: float
    high: float
    logarithmic: bool

    def x(self, step: int) -> float:
        part = (step - self.first) / max(self.last - self.first, 1)
        return _LEFT + part * (_WIDE - _LEFT - _RIGHT)

    def y(self, ms: float) -> float:
        low, high, at = (
            (math.log(self.low), math.log(self.high), math.log(max(ms, self.low)))
            if self.logarithmic
            else (self.low, self.high, ms)
        )
        return _HIGH - _BOTTOM - (at - low) / (high - low) * (_HIGH - _TOP - _BOTTOM)


def picture(step: StepReport) -> str:
    samples = [one for one in step.timeline if math.isfinite(one.ms) and one.ms > 0][:_DRAWN]
    if not samples:
        return ""
    axes = _axes(samples, step)
    label = f"Milliseconds of {len(samples):,} steps, from step {axes.first:,} to step {axes.last:,}: " + ", ".join(
        f"{sum(s.kind == kind for s in samples)} {words}" for kind, words in KINDS.items()
    )
    parts = [f"<svg width='{_WIDE}' height='{_HIGH}' viewBox='0 0 {_WIDE} {_HIGH}' role='img' aria-label='{label}'>"]
    parts += _frame(axes)
    parts += _medians(step, axes)
    if step.break_even is not None and axes.first <= step.break_even <= axes.last:
        x = axes.x(step.break_even)
        parts.append(f"<line class='event' x1='{x:.1f}' x2='{x:.1f}' y1='{_TOP}' y2='{_HIGH - _BOTTOM}'/>")
        anchor = "start" if x < _WIDE / 2 else "end"
        parts.append(f"<text class='small' x='{x:.1f}' y='{_TOP - 8}' text-anchor='{anchor}'>broke even</text>")
    parts += [_point(sample, axes) for sample in samples]
    seen = [kind for kind in KINDS if any(s.kind == kind for s in samples)]
    legend = " ".join(
        f"<span class='key'><svg width='26' height='12'><path class='step-{kind}' transform='translate(17,6)' "
        f"d='{_SHAPES[kind]}'/></svg>{KINDS[kind]}</span>"
        for kind in seen
    )
    return f"<h3>Single steps</h3><div class='scroll'>{''.join(parts)}</svg></div><p class='soft'>{legend}</p>"


def _axes(samples: list[StepSample], step: StepReport) -> _Axes:
    times = sorted([s.ms for s in samples] + [ms for ms in (step.plain_ms, step.compiled_ms) if ms])
    logarithmic = times[-1] > _LOGARITHMIC * times[len(times) // 2]
    low = times[0] / 1.3 if logarithmic else 0.0
    return _Axes(samples[0].step, samples[-1].step, low, times[-1] * 1.1, logarithmic)


def _frame(axes: _Axes) -> Iterator[str]:
    right = _WIDE - _RIGHT
    for ms in _ticks(axes):
        y = axes.y(ms)
        yield f"<line class='grid' x1='{_LEFT}' x2='{right}' y1='{y:.1f}' y2='{y:.1f}'/>"
        yield f"<text class='small' x='{_LEFT - 6}' y='{y + 4:.1f}' text-anchor='end'>{ms:,g}</text>"
    yield f"<text class='small' x='{_LEFT - 6}' y='{_TOP - 8}' text-anchor='end'>ms</text>"
    ends = {axes.first: "start", axes.last: "end"}
    for number, anchor in ends.items():
        yield f"<text class='small' x='{axes.x(number):.1f}' y='{_HIGH - 12}' text-anchor='{anchor}'>step {number:,}</text>"


def _ticks(axes: _Axes) -> list[float]:
    """Round numbers inside the axis: 1, 2 and 5 times a power of ten, at least 1 for a logarithmic axis, else about four."""
    decades = range(math.floor(math.log10(axes.high)) - 8, math.ceil(math.log10(axes.high)) + 1)
    if axes.logarithmic:
        wide = axes.high / axes.low > 200
        steps = [factor * 10.0**n for n in decades for factor in ((1,) if wide else (1, 2, 5))]
        return [ms for ms in steps if axes.low <= ms <= axes.high]
    size = next(factor * 10.0**n for n in decades for factor in (1, 2, 5) if axes.high / (factor * 10.0**n) <= 5)
    return [size * n for n in range(int(axes.high / size) + 1)]


def _medians(step: StepReport, axes: _Axes) -> Iterator[str]:
    """Both medians as lines; their names do not overlap, however close they are."""
    lines = [(ms, name) for ms, name in ((step.plain_ms, "eager"), (step.compiled_ms, "compiled")) if ms]
    lines.sort()
    below = math.inf
    for ms, name in lines:
        y = axes.y(ms)
        text = min(y, below - 13)
        below = text
        yield f"<line class='median' x1='{_LEFT}' x2='{_WIDE - _RIGHT}' y1='{y:.1f}' y2='{y:.1f}'/>"
        words = f"{name}: {milliseconds(ms)} ms"
        yield f"<text class='small' x='{_WIDE - _RIGHT + 6}' y='{text + 4:.1f}'>{words}</text>"


def _point(sample: StepSample, axes: _Axes) -> str:
    where = f"translate({axes.x(sample.step):.1f},{axes.y(sample.ms):.1f})"
    title = f"step {sample.step:,}: {milliseconds(sample.ms)} ms, {KINDS[sample.kind]}"
    return f"<path class='step-{sample.kind}' transform='{where}' d='{_SHAPES[sample.kind]}'><title>{title}</title></path>"
