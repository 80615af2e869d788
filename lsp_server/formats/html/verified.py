"""The chapter on `run --verify`: a table, and how far compiled code was from eager mode over the steps. Key function:
chapter."""

from __future__ import annotations

import math
from html import escape

from lsp_server.formats import verified
from lsp_server.formats.html.table import table
from lsp_server.formats.view import clean
from magpy_core.findings import RegionSummary, Report

_WIDE, _HIGH, _LEFT, _RIGHT, _TOP, _BOTTOM = 1100, 220, 70, 30, 16, 34
_LOWEST = 1e-9  # of the axis; what is equal lies there


def chapter(report: Report) -> str:
    """Empty if nothing was compared but the first calls."""
    regions = verified.compared(report)
    if not regions:
        return ""
    head = "<th>region</th>" + "".join(f"<th class='number'>{name}</th>" for name in verified.HEAD)
    rows = [_row(region) for region in regions]
    explanation = "Difference: of an element, as a part of the largest element of its tensor."
    drawn = "".join(map(_picture, regions))
    return f"<h2 id='verified'>Verified</h2>{table(head, rows)}<p class='soft'>{explanation}</p>{drawn}"


def _row(region: RegionSummary) -> str:
    why = "".join(f"<br><span class='soft'>{escape(reason)}</span>" for reason in verified.reasons(region))
    numbers = "".join(f"<td class='number'>{cell}</td>" for cell in verified.cells(region))
    return f"<tr><td><b>{escape(clean(region.name))}</b>{why}</td>{numbers}</tr>"


def _picture(region: RegionSummary) -> str:
    """The differences over the steps, on a logarithmic axis: growing ones show before they are errors."""
    samples = [one for one in region.samples if not one.unchecked]
    if not samples:
        return ""
    first, last = samples[0].step, samples[-1].step
    low, high = math.log10(_LOWEST), max(0.0, *(math.log10(max(one.apart, _LOWEST)) for one in samples))
    high = min(high, 3.0)  # what is not finite

    def x(step: int) -> float:
        return _LEFT + (step - first) / max(last - first, 1) * (_WIDE - _LEFT - _RIGHT)

    def y(apart: float) -> float:
        at = min(max(math.log10(max(apart, _LOWEST)), low), high)
        return _HIGH - _BOTTOM - (at - low) / (high - low) * (_HIGH - _TOP - _BOTTOM)

    name = escape(clean(region.name))
    worst = max(one.apart for one in samples)
    label = f"Largest difference from eager mode in {len(samples):,} calls of {name}: {worst:.1e}"
    parts = [f"<svg width='{_WIDE}' height='{_HIGH}' viewBox='0 0 {_WIDE} {_HIGH}' role='img' aria-label='{label}'>"]
    for power in range(math.ceil(low), math.floor(high) + 1, 3):
        at = y(10.0**power)
        parts.append(f"<line class='grid' x1='{_LEFT}' x2='{_WIDE - _RIGHT}' y1='{at:.1f}' y2='{at:.1f}'/>")
        parts.append(f"<text class='small' x='{_LEFT - 8}' y='{at + 4:.1f}' text-anchor='end'>1e{power}</text>")
    for step, anchor in ((first, "start"), (last, "end")) if last > first else ((first, "start"),):
        parts.append(f"<text class='small' x='{x(step):.1f}' y='{_HIGH - 12}' text-anchor='{anchor}'>step {step:,}</text>")
    for one in samples:
        title = f"step {one.step:,}: {one.apart:.1e}"
        style = "step-waited" if one.is_difference else "step-compiled"
        parts.append(
            f"<circle class='{style}' cx='{x(one.step):.1f}' cy='{y(one.apart):.1f}' r='3'><title>{title}</title></circle>"
        )
    return f"<h3>{name}</h3><div class='scroll'>{''.join(parts)}</svg></div>"
