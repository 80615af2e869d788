"""The phases of a region as a picture, drawn from the table that the code follows. Key function: svg."""

from __future__ import annotations

import math
import textwrap
from html import escape

from magpy_core.regions.policy.phase import NEXT, Phase

_Point = tuple[float, float]
#: The middle of each phase's box.
PLACES: dict[Phase, _Point] = {
    Phase.WARM_UP: (110, 60),
    Phase.RECORD: (380, 60),
    Phase.SERVE: (900, 60),
    Phase.SAMPLE: (640, 250),
    Phase.EAGER: (240, 460),
    Phase.FRAGMENTS: (900, 460),
}
_WIDTH, _HEIGHT = 140, 44
#: Where a line's text is, as a share of its length, and by how much the line bends to one side; the others are straight.
_TEXTS: dict[tuple[Phase, Phase], float] = {
    (Phase.WARM_UP, Phase.EAGER): 0.4,
    (Phase.RECORD, Phase.SAMPLE): 0.55,
    (Phase.SAMPLE, Phase.RECORD): 0.55,
    (Phase.SERVE, Phase.SAMPLE): 0.45,
    (Phase.SAMPLE, Phase.SERVE): 0.35,
    (Phase.SERVE, Phase.EAGER): 0.62,
    (Phase.EAGER, Phase.FRAGMENTS): 0.64,
}
_BENDS: dict[tuple[Phase, Phase], float] = {(Phase.SERVE, Phase.EAGER): -215}


def svg() -> str:
    edges = [(phase, after, why) for phase, others in NEXT.items() for after, why in others.items()]
    lines = "".join(f'<path d="{_path(a, b)}"/>\n' for a, b, _ in edges)
    texts = "".join(_text(a, b, why) for a, b, why in edges)
    boxes = "".join(_box(phase, place) for phase, place in PLACES.items())
    return f"""<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 1010 520" font-family="system-ui, sans-serif" font-size="13" role="img" aria-label="The phases of a region, and what leads from one to another">
<rect width="1010" height="520" rx="12" fill="#ffffff" stroke="#c5cae9"/>
<defs><marker id="arrow" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="8" markerHeight="8" orient="auto"><path d="M0 0 10 5 0 10z" fill="#455a64"/></marker></defs>
<g fill="none" stroke="#455a64" stroke-width="1.4" marker-end="url(#arrow)">
<path d="M10 60H38"/>
{lines}</g>
{boxes}<g text-anchor="middle" fill="#263238" stroke="#ffffff" stroke-width="4" paint-order="stroke" stroke-linejoin="round">
{texts}</g>
</svg>
"""


def _box(phase: Phase, place: _Point) -> str:
    x, y = place[0] - _WIDTH / 2, place[1] - _HEIGHT / 2
    return (
        f'<rect x="{x:g}" y="{y:g}" width="{_WIDTH}" height="{_HEIGHT}" rx="8" fill="#e8eaf6" stroke="#3f51b5"/>'
        f'<text x="{place[0]:g}" y="{place[1] + 5:g}" text-anchor="middle" font-weight="600" fill="#1a237e">{phase.name}</text>\n'
    )


def _curve(a: Phase, b: Phase) -> tuple[_Point, _Point, _Point]:
    """From the border of one box to that of the other, beside the line in the other direction if there is one."""
    (ax, ay), (bx, by) = PLACES[a], PLACES[b]
    length = math.hypot(bx - ax, by - ay)
    side = (-(by - ay) / length, (bx - ax) / length)
    shift = 0 if a not in NEXT[b] else 9 if ay == by else 34
    bend = _BENDS.get((a, b), 0.0)
    middle = ((ax + bx) / 2 + side[0] * (shift + bend), (ay + by) / 2 + side[1] * (shift + bend))
    start, end = (_border(PLACES[phase], middle, side, shift if not bend else 0) for phase in (a, b))
    return start, middle, end


def _border(place: _Point, towards: _Point, side: _Point, shift: float) -> _Point:
    x, y = place[0] + side[0] * shift, place[1] + side[1] * shift
    dx, dy = towards[0] - x, towards[1] - y
    left = (_WIDTH / 2 + 2 - math.copysign(1, dx) * (x - place[0])) / abs(dx) if dx else math.inf
    up = (_HEIGHT / 2 + 2 - math.copysign(1, dy) * (y - place[1])) / abs(dy) if dy else math.inf
    share = min(left, up)
    return x + dx * share, y + dy * share


def _path(a: Phase, b: Phase) -> str:
    (sx, sy), (mx, my), (ex, ey) = _curve(a, b)
    return f"M{sx:.0f} {sy:.0f}Q{mx:.0f} {my:.0f} {ex:.0f} {ey:.0f}"


def _text(a: Phase, b: Phase, why: str) -> str:
    t = _TEXTS.get((a, b), 0.5)
    start, middle, end = _curve(a, b)
    x, y = ((1 - t) ** 2 * p + 2 * t * (1 - t) * q + t**2 * r for p, q, r in zip(start, middle, end, strict=True))
    lines = textwrap.wrap(why, 24)
    first = y + 4 - 8 * (len(lines) - 1)
    spans = "".join(f'<tspan x="{x:.0f}" y="{first + 16 * n:.0f}">{escape(line)}</tspan>' for n, line in enumerate(lines))
    return f"<text>{spans}</text>\n"
