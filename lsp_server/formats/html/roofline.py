"""A roofline as SVG: arithmetic per byte against arithmetic per second, both logarithmic. Key function: picture.

The device's memory is the slope, its peak rates are the level lines. A dot is a kernel, at the rate that its least time
gives: on the roof that limits it, or below all if starting it takes longer. The larger, the more of the time.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape

from lsp_server.formats.kernels import lines, us
from lsp_server.formats.view import clean, count
from magpy_core.findings import Kernel, TargetReport
from magpy_core.findings.kernels import BOUNDS
from magpy_core.runner.request import UnknownTarget, parse_target

# Small, because a phone shows it whole, with text of the size that it has here.
_WIDE, _HIGH, _LEFT, _RIGHT, _TOP, _BOTTOM = 400, 330, 50, 10, 28, 44
_SMALLEST, _LARGEST = 2.5, 9.0  # radius of a dot
_PREFIXES = ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))


@dataclass(frozen=True)
class _Axes:
    """The powers of ten at the ends of both axes."""

    left: int
    right: int
    bottom: int
    top: int

    def x(self, intensity: float) -> float:
        return _LEFT + (math.log10(intensity) - self.left) / (self.right - self.left) * (_WIDE - _LEFT - _RIGHT)

    def y(self, rate: float) -> float:
        return _HIGH - _BOTTOM - (math.log10(rate) - self.bottom) / (self.top - self.bottom) * (_HIGH - _TOP - _BOTTOM)


def picture(target: TargetReport) -> str:
    """Empty if no kernel computes anything."""
    numbered = [(number, kernel) for number, kernel in enumerate(target.kernels, 1) if _is_drawn(kernel)]
    if not numbered:
        return ""
    kernels = [kernel for _, kernel in numbered]
    roofs = _roofs(target, kernels)
    axes = _axes(target, kernels, roofs)
    bounds = {bound: sum(kernel.bound == bound for kernel in kernels) for bound in BOUNDS}
    told = ", ".join(f"{number} limited by {bound}" for bound, number in bounds.items() if number)
    label = escape(clean(f"Roofline of {target.device}: {count(len(kernels), 'kernel')}, {told}"), quote=True)
    parts = [f"<svg class='roofline' viewBox='0 0 {_WIDE} {_HIGH}' role='img' aria-label='{label}'>", *_frame(axes)]
    parts += [*_slope(target, roofs, axes), *_levels(target, roofs, axes)]
    whole = sum(kernel.total_us for kernel in kernels)
    largest_first = sorted(numbered, key=lambda item: -item[1].total_us)  # a small dot stays visible
    parts += [_dot(number, kernel, whole, axes) for number, kernel in largest_first]
    return f"{''.join(parts)}</svg>{_legend(target, bounds, len(kernels))}"


def _is_drawn(kernel: Kernel) -> bool:
    return kernel.work.intensity > 0 and kernel.us > 0


def _rate(kernel: Kernel) -> float:
    """Operations per second at its least time."""
    return kernel.work.flops / kernel.us * 1e6


def _roofs(target: TargetReport, kernels: Sequence[Kernel]) -> dict[str, float]:
    """The peak rates of the types that the kernels compute with."""
    try:
        peaks = parse_target(target.target).peaks
    except UnknownTarget:  # a report of another version
        return {}
    return {name: peaks[name] for name in dict.fromkeys(kernel.work.dtype for kernel in kernels) if name in peaks}


def _axes(target: TargetReport, kernels: Sequence[Kernel], roofs: dict[str, float]) -> _Axes:
    across = [kernel.work.intensity for kernel in kernels] + [3 * peak / target.bandwidth for peak in roofs.values()]
    up = [_rate(kernel) for kernel in kernels] + list(roofs.values())
    left, right = math.floor(math.log10(min(across) * 0.8)), math.ceil(math.log10(max(across)))
    bottom, top = math.floor(math.log10(min(up) * 0.8)), math.ceil(math.log10(max(up) * 2.5))
    return _Axes(left, max(right, left + 1), bottom, max(top, bottom + 1))


def _frame(axes: _Axes) -> Iterator[str]:
    low, right = _HIGH - _BOTTOM, _WIDE - _RIGHT
    for power in range(axes.left, axes.right + 1):
        x = axes.x(10.0**power)
        yield f"<line class='grid' x1='{x:.1f}' x2='{x:.1f}' y1='{_TOP}' y2='{low}'/>"
        yield f"<text class='small' x='{x:.1f}' y='{low + 15}' text-anchor='middle'>{10.0**power:,g}</text>"
    step = 1 if axes.top - axes.bottom <= 8 else 2
    for power in range(axes.bottom, axes.top + 1, step):
        y = axes.y(10.0**power)
        yield f"<line class='grid' x1='{_LEFT}' x2='{right}' y1='{y:.1f}' y2='{y:.1f}'/>"
        yield f"<text class='small' x='{_LEFT - 6}' y='{y + 3.5:.1f}' text-anchor='end'>{_amount(10.0**power)}</text>"
    yield f"<text class='small' x='{(_LEFT + right) / 2:.0f}' y='{_HIGH - 8}' text-anchor='middle'>FLOP per byte</text>"
    yield f"<text class='small' x='4' y='{_TOP - 8}'>FLOP/s</text>"


def _amount(number: float) -> str:
    """``67 T``."""
    for factor, prefix in _PREFIXES:
        if number >= factor:
            return f"{number / factor:,.4g} {prefix}"
    return f"{number:,.4g}"


def _slope(target: TargetReport, roofs: dict[str, float], axes: _Axes) -> Iterator[str]:
    """What the memory allows, up to the highest peak."""
    ends = max(roofs.values(), default=10.0**axes.top)
    low, high = 10.0**axes.left, min(10.0**axes.right, ends / target.bandwidth)
    low = max(low, 10.0**axes.bottom / target.bandwidth)
    if low >= high:
        return
    a, b = ((axes.x(at), axes.y(at * target.bandwidth)) for at in (low, high))
    yield f"<line class='roof' x1='{a[0]:.1f}' y1='{a[1]:.1f}' x2='{b[0]:.1f}' y2='{b[1]:.1f}'/>"
    angle = math.degrees(math.atan2(b[1] - a[1], b[0] - a[0]))
    x, y = a[0] + (b[0] - a[0]) * 0.12, a[1] + (b[1] - a[1]) * 0.12
    yield (
        f"<text class='small' x='{x:.1f}' y='{y - 5:.1f}' transform='rotate({angle:.1f} {x:.1f} {y:.1f})'>"
        f"memory {_amount(target.bandwidth)}B/s</text>"
    )


def _levels(target: TargetReport, roofs: dict[str, float], axes: _Axes) -> Iterator[str]:
    """The peaks, from where the memory allows them."""
    used = -math.inf  # down to here
    for name, peak in sorted(roofs.items(), key=lambda item: -item[1]):
        y, right = axes.y(peak), _WIDE - _RIGHT
        begin = min(max(axes.x(peak / target.bandwidth), _LEFT), right)
        yield f"<line class='roof' x1='{begin:.1f}' y1='{y:.1f}' x2='{right}' y2='{y:.1f}'/>"
        if y - used >= 16:
            text, used = y - 4, y
        else:  # names don't overlap, however close the peaks are
            text = max(y, used) + 12
            used = text
        words = f"{escape(clean(name))} {_amount(peak)}FLOP/s"
        yield f"<text class='small' x='{right}' y='{text:.1f}' text-anchor='end'>{words}</text>"


def _dot(number: int, kernel: Kernel, whole: float, axes: _Axes) -> str:
    radius = _SMALLEST + (_LARGEST - _SMALLEST) * math.sqrt(kernel.total_us / whole)
    times = f", {kernel.launches:,} times" if kernel.launches > 1 else ""
    work = f"{kernel.work.intensity:,.2f} FLOP per byte in {kernel.work.dtype}"
    title = f"{number}. {kernel.name}: at least {us(kernel.us)} ({kernel.bound}){times}, {work}; {lines(kernel)}"
    return (
        f"<circle class='limit-{escape(kernel.bound)}' cx='{axes.x(kernel.work.intensity):.1f}' "
        f"cy='{axes.y(_rate(kernel)):.1f}' r='{radius:.1f}'><title>{escape(clean(title))}</title></circle>"
    )


def _legend(target: TargetReport, bounds: dict[str, int], drawn: int) -> str:
    names = {"memory": "the memory", "compute": "arithmetic", "launch": "being started"}
    shown = ", ".join(
        f"<span class='key'><svg width='16' height='10'><circle class='limit-{bound}' cx='8' cy='5' r='5'/></svg>"
        f"{names[bound]} ({number})</span>"
        for bound, number in bounds.items()
        if number
    )
    left = len(target.kernels) - drawn
    without = f" {count(left, 'kernel')} without arithmetic {'is' if left == 1 else 'are'} not drawn." if left else ""
    return f"<p class='soft'>Limited by {shown}. A larger dot takes more of the time.{without}</p>"
