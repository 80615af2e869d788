"""The eager and the compiled step as bars, split into their parts, as SVG. Key function: picture.

All bars have the same scale. A part's forward pass is solid, its backward pass faded; time that belongs to no part is an
empty frame.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from html import escape

from lsp_server.formats.step_parts import PartRow, Split, rows
from lsp_server.formats.step_text import milliseconds
from lsp_server.formats.view import clean, shorten
from magpy_core.findings import StepReport

_WIDE, _LEFT, _BAR, _ROW, _TOP = 1100, 190, 28, 60, 22
_COLORS = 6
"""This many parts have a separate color; the smaller ones share one."""


@dataclass(frozen=True)
class _Piece:
    """What is drawn of one part in one bar."""

    name: str
    style: str
    split: Split

    @property
    def title(self) -> str:
        return f"{self.name}: {self.split.total_text} ms{self.split.note}"


def picture(steps: Mapping[str, StepReport]) -> str:
    """The steps of one run, or of several by the run's name; a region has one color in all bars. Empty if there are neither
    parts nor two bars to compare."""
    styles = _styles([row for step in steps.values() for row in rows(step)])
    bars = []
    for kind in ("eager", "compiled"):
        for run, step in steps.items():
            whole = step.plain_ms if kind == "eager" else step.compiled_ms
            splits = [(row, row.plain if kind == "eager" else row.compiled) for row in rows(step)]
            pieces = [_Piece(clean(row.name), styles[row.region], split) for row, split in splits]
            bars.append((f"{kind} step{f', {run}' if run else ''}", whole, pieces))
    drawn = [(name, whole, [p for p in pieces if p.split.total]) for name, whole, pieces in bars if whole]
    if len(drawn) < 2 and not any(pieces for *_, pieces in drawn):
        return ""
    longest = max(max(whole, sum(p.split.total or 0.0 for p in pieces)) for _, whole, pieces in drawn)
    scale = (_WIDE - _LEFT - 110) / longest
    height = len(drawn) * _ROW + 6
    label = escape("; ".join(_words(*bar) for bar in drawn), quote=True)
    parts = [f"<svg width='{_WIDE}' height='{height}' viewBox='0 0 {_WIDE} {height}' role='img' aria-label='{label}'>"]
    for number, (name, whole, pieces) in enumerate(drawn):
        y = number * _ROW + _TOP
        parts.append(f"<text x='10' y='{y + 18}'>{name}</text>")
        parts += _bar(pieces, whole, y, scale)
    return f"<div class='scroll'>{''.join(parts)}</svg></div>{_legend(drawn)}"


def _styles(parts: Iterable[PartRow]) -> dict[str, str]:
    """A color for each region, the same in all bars, the largest first."""
    times: dict[str, float] = {}
    for row in parts:
        times[row.region] = max(times.get(row.region, 0.0), row.plain.total or 0.0, row.compiled.total or 0.0)
    regions = sorted(filter(None, times), key=lambda region: -times[region])
    own = {region: f"part{place}" for place, region in enumerate(regions[:_COLORS])}
    return {region: own.get(region, "others" if region else "rest") for region in times}


def _bar(pieces: list[_Piece], whole: float, y: int, scale: float) -> Iterator[str]:
    x, labelled = float(_LEFT), 0.0
    for piece in pieces:
        begin, title = x, escape(piece.title)
        for milli, style in ((piece.split.forward, "forward"), (piece.split.backward, "backward")):
            if milli:
                width = milli * scale
                yield (
                    f"<rect class='{piece.style} {style}' x='{x:.1f}' y='{y}' width='{width:.1f}' height='{_BAR}'>"
                    f"<title>{title}</title></rect>"
                )
                x += width
        shown = f"{piece.split.total_text}"
        if x - begin > 7 * len(shown) and begin >= labelled:
            yield f"<text class='small' x='{(begin + x) / 2:.1f}' y='{y - 5}' text-anchor='middle'>{shown}</text>"
            labelled = x
    end = _LEFT + whole * scale
    if end - x > 1:  # medians of parts need not add up to the median of the whole
        yield (
            f"<rect class='unassigned' x='{x:.1f}' y='{y}' width='{end - x:.1f}' height='{_BAR}'>"
            f"<title>no part: {milliseconds((end - x) / scale)} ms</title></rect>"
        )
    yield f"<text x='{max(x, end) + 8:.1f}' y='{y + 18}'>{milliseconds(whole)} ms</text>"


def _words(name: str, whole: float, pieces: list[_Piece]) -> str:
    """A bar in words, for screen readers."""
    return ", ".join([f"{name} {milliseconds(whole)} ms", *(piece.title for piece in pieces)])


def _legend(drawn: list[tuple[str, float, list[_Piece]]]) -> str:
    names: dict[str, list[str]] = {}
    for _, _, pieces in drawn:
        for piece in pieces:
            if piece.name not in names.setdefault(piece.style, []):
                names[piece.style].append(piece.name)
    if not names:
        return ""
    order = sorted(names, key=lambda style: (style == "rest", style == "others", style))
    shown = [_key(style, escape(_name(names[style]))) for style in order]
    if any(piece.split.backward for _, _, pieces in drawn for piece in pieces):
        shown.append(_key(f"{order[0]} backward", "faded: the backward pass"))
    return f"<p class='soft'>{' '.join(shown)}</p>"


def _name(names: list[str]) -> str:
    return shorten(names[0], 40) if len(names) == 1 else f"{len(names)} smaller parts"


def _key(style: str, words: str) -> str:
    swatch = f"<svg width='26' height='10'><rect class='{style}' x='12' width='10' height='10'/></svg>"
    return f"<span class='key'>{swatch}{words}</span>"
