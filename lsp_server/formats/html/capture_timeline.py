"""The chapter on recompiles: a region's captures over its calls, and why each was made. Key function: chapter.

A lane for each capture; the table below it says the same in words.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape

from lsp_server.formats.html.capture_history import Recording, history
from lsp_server.formats.html.source import Sheets
from lsp_server.formats.html.table import table
from lsp_server.formats.html.timeline import bar, legend
from lsp_server.formats.step_text import duration
from lsp_server.formats.view import clean, count, first_line, shorten
from magpy_core.findings import Recompile, RegionSummary, Report
from magpy_core.findings.details import Call

_WIDE, _LEFT, _RIGHT, _ROW, _LANE = 1100, 110, 110, 26, 36
_LANES = 60
_CALLS = 4000
_CAUSES = 4  # of one capture, in its title
_CHARACTER = 5.6  # units of the picture, on average
_QUIET = 6
"""If the captures end within this part of the run, the picture ends soon after them: they would all be at its left edge."""


def chapter(report: Report, sheets: Sheets) -> str:
    """Empty for a report in which no region was captured."""
    calls = report.details.calls if report.details is not None else []
    found = [(region, history(region, calls)) for region in report.regions]
    parts = [_region(region, recordings, calls, sheets) for region, recordings in found if region.recompiles]
    once = [region for region in report.regions if region.captures and not region.recompiles]
    if not parts and not once:
        return ""
    if not parts:
        parts = ["<p class='good'>No region was compiled again.</p>"]
    elif once:
        names = ", ".join(escape(clean(region.name)) for region in once)
        parts.append(f"<p class='soft'>Not compiled again: {names}.</p>")
    return "".join(["<h2 id='recompiles'>Recompiles</h2>", *parts])


def _region(region: RegionSummary, recordings: Sequence[Recording], calls: Sequence[Call], sheets: Sheets) -> str:
    name = escape(clean(region.name))
    program = f" in {escape(clean(region.entrypoint))}" if region.entrypoint else ""
    facts = f"{program} {count(region.calls, 'call')}, {count(region.captures, 'capture')}"
    own = [call for call in calls if call.region == region.id]
    hits = "" if any(one.made for one in recordings) or region.engine != "magpy" else _hits_apart(region)
    drawn = picture(region, recordings, own)
    return f"<h3>{name}<span class='soft'>{facts}</span></h3>{drawn}{_table(recordings, sheets)}{hits}"


def _hits_apart(region: RegionSummary) -> str:
    if not region.per_capture:
        return ""
    hits = ", ".join(f"{capture.hits:,}" for capture in region.per_capture)
    return f"<p class='soft'>Hits of the captures that were kept, newest first: {hits}.</p>"


@dataclass(frozen=True)
class _Axis:
    begin: float
    end: float
    left_out: int  # calls after the end of the picture

    @staticmethod
    def of(calls: Sequence[Call], recorded: Sequence[Call]) -> _Axis:
        begin, end = calls[0].start, max(call.start + call.seconds for call in calls)
        last = max(call.start + call.seconds for call in recorded)
        if (last - begin) * _QUIET < end - begin:
            end = last + (last - begin) / 2
        return _Axis(begin, end, sum(call.start + call.seconds > end for call in calls))

    @property
    def scale(self) -> float:
        return (_WIDE - _LEFT - _RIGHT) / max(self.end - self.begin, 1e-9)

    def x(self, seconds: float) -> float:
        return _LEFT + (seconds - self.begin) * self.scale


def picture(region: RegionSummary, recordings: Sequence[Recording], calls: Sequence[Call]) -> str:
    """Empty unless the recordings were timed. ``calls``: the region's own."""
    lanes = [(number, one, one.timed) for number, one in enumerate(recordings, 1) if one.timed is not None][:_LANES]
    if not lanes:
        return ""
    axis = _Axis.of(calls, [timed for *_, timed in lanes])
    height = _ROW + len(lanes) * _LANE + 22
    label = escape(_words(region, recordings), quote=True)
    parts = [f"<svg width='{_WIDE}' height='{height}' viewBox='0 0 {_WIDE} {height}' role='img' aria-label='{label}'>"]
    parts.append("<text x='10' y='18'>calls</text>")
    drawn = [call for call in calls if call.start + call.seconds <= axis.end]
    parts += [bar(call, axis.x(call.start), 5.0, axis.scale) for call in _thinned(drawn)]
    for row, (number, one, timed) in enumerate(lanes):
        parts += _lane(number, one, timed, axis, _ROW + row * _LANE)
    parts.append(f"<text class='small' x='{_LEFT}' y='{height - 6}'>{axis.begin:,.2f} s</text>")
    right = _WIDE - _RIGHT
    parts.append(f"<text class='small' x='{right}' y='{height - 6}' text-anchor='end'>{axis.end:,.2f} s</text>")
    note = f"<p class='soft'>{legend(drawn)}.{_left_out(axis, calls)}</p>"
    return f"<div class='scroll'>{''.join(parts)}</svg></div>{note}"


def _thinned(calls: Sequence[Call]) -> list[Call]:
    """Every capture, and evenly as many other calls as can be drawn."""
    step = math.ceil(len(calls) / _CALLS)
    return [call for number, call in enumerate(calls) if number % step == 0 or call.how == "recorded"]


def _left_out(axis: _Axis, calls: Sequence[Call]) -> str:
    if not axis.left_out:
        return ""
    end = duration(max(call.start + call.seconds for call in calls))
    return f" Then {axis.left_out:,} more call{'' if axis.left_out == 1 else 's'}, up to {end}, without a capture."


def _lane(number: int, one: Recording, timed: Call, axis: _Axis, y: int) -> Iterator[str]:
    """When it was recorded, why, and from then on a line up to its hits."""
    x, wide = axis.x(timed.start), max(timed.seconds * axis.scale, 2.0)
    right = _WIDE - _RIGHT
    title = escape(_sentence(number, one), quote=True)
    yield f"<text x='10' y='{y + 27}'>{_name(number, one)}</text>"
    if one.made is not None:
        yield f"<line class='life' x1='{x + wide:.1f}' x2='{right}' y1='{y + 23}' y2='{y + 23}'/>"
    yield f"<rect class='recorded' x='{x:.1f}' y='{y + 16}' width='{wide:.1f}' height='14'><title>{title}</title></rect>"
    at, anchor, room = (
        (x, "start", right - x) if x < (_LEFT + right) / 2 else (min(x + wide, right), "end", x + wide - _LEFT)
    )
    text = escape(shorten(_why(one), int(room / _CHARACTER)), quote=True)
    yield f"<text class='small' x='{at:.1f}' y='{y + 11}' text-anchor='{anchor}'>{text}</text>"
    if one.made is not None:
        style = "" if one.made.hits else " class='small'"
        yield f"<text{style} x='{right + 8}' y='{y + 27}'>{count(one.made.hits, 'hit')}</text>"


def _name(number: int, one: Recording) -> str:
    return f"{'recording' if one.made is None else 'capture'} {number}"


def _call(one: Recording) -> str:
    return f"call {one.number:,}" if one.number else "an earlier call"


def _why(one: Recording) -> str:
    """``call 13, line 12: self.training changed from True to False``."""
    if not one.causes:
        return f"{_call(one)}: no capture before it"
    first, *others = one.causes
    more = f", and {len(others)} more" if others else ""
    return f"{_call(one)}{_line(first)}: {_change(first, 40)}{more}"


def _change(cause: Recompile, width: int) -> str:
    name, old, new = (shorten(first_line(text), width) for text in (cause.name, cause.old, cause.new))
    return f"{name} changed from {old} to {new}"


def _line(cause: Recompile) -> str:
    return f", line {cause.line}" if cause.line else ""


def _sentence(number: int, one: Recording) -> str:
    causes = "; ".join(f"{_change(cause, 80)}{_line(cause)}" for cause in one.causes[:_CAUSES]) or "no capture before it"
    took = f", {one.timed.seconds * 1e3:,.1f} ms" if one.timed is not None else ""
    hits = f"; {count(one.made.hits, 'hit')}" if one.made is not None else ""
    return f"{_name(number, one)}: {_call(one)}{took}: {causes}{hits}"


def _words(region: RegionSummary, recordings: Sequence[Recording]) -> str:
    """The picture in words, for screen readers."""
    said = ". ".join(_sentence(number, one) for number, one in enumerate(recordings[:_LANES], 1))
    return f"Captures of {clean(region.name)} over its {count(region.calls, 'call')}. {said}."


def _table(recordings: Sequence[Recording], sheets: Sheets) -> str:
    head = "<th></th><th class='number'>call</th><th class='number'>at</th><th>what changed</th><th>from</th>"
    head += "<th>to</th><th>read at</th><th class='number'>hits</th>"
    rows = [row for number, one in enumerate(recordings, 1) for row in _rows(number, one, sheets)]
    return table(head, rows)


def _rows(number: int, one: Recording, sheets: Sheets) -> Iterator[str]:
    """A row for each cause; the figures of the capture are in the first."""
    call = f"{one.number:,}" if one.number else ""
    when = f"{one.timed.start:,.2f} s" if one.timed is not None else ""
    hits = f"{one.made.hits:,}" if one.made is not None else ""
    first = [f"<td>{_name(number, one)}</td>"] + [f"<td class='number'>{cell}</td>" for cell in (call, when)]
    last = f"<td class='number'>{hits}</td>"
    if not one.causes:
        nothing = "<td><span class='soft'>no capture before it</span></td><td></td><td></td><td></td>"
        yield f"<tr>{''.join(first)}{nothing}{last}</tr>"
    for cause in one.causes:
        values = "".join(f"<td><code>{escape(clean(text))}</code></td>" for text in (cause.name, cause.old, cause.new))
        place = sheets.place(cause.file, cause.line) if cause.file else ""
        yield f"<tr>{''.join(first)}{values}<td>{place}</td>{last}</tr>"
        first, last = ["<td></td><td></td><td></td>"], "<td></td>"
