"""Compares what runs print, line by line: the text exactly, numbers by what rounding noise changes. Key type: Printed.

Imports only the standard library and the limits.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from magpy_core.limits import LIMITS

_NUMBER = re.compile(r"(?<![\w.])[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?|(?<!\w)[-+]?(?:nan|inf)(?!\w)")
_HOLE = "\0"


@dataclass(frozen=True)
class Line:
    text: str  # with a hole for each number
    numbers: tuple[str, ...]

    @classmethod
    def of(cls, line: str) -> Line:
        return cls(_NUMBER.sub(_HOLE, line), tuple(_NUMBER.findall(line)))


@dataclass(frozen=True)
class Printed:
    """``difference``: the first that rounding does not explain, with the ``line`` (from 1), or nothing. ``is_rounding``:
    there is one that rounding explains. ``ignored``: what was not compared, because two eager runs differ in it."""

    difference: str = ""
    line: int = 0
    is_rounding: bool = False
    ignored: str = ""


def compare(eager: str, compiled: str, again: str | None = None, noisy: Sequence[str] = ()) -> Printed:
    """``again``: of a second eager run; None: not known yet, so that nothing is left out."""
    if eager == compiled:
        return Printed()
    lines, others = _lines(eager), _lines(compiled)
    masked: set[tuple[str, int]] = set()
    if again is not None:
        second = _lines(again)
        if [one.text for one in lines] != [one.text for one in second]:
            return Printed(ignored="two eager runs print different lines")
        masked = {place for a, b in zip(lines, second, strict=True) for place in _differing(a, b)}
    ignored = "numbers that differ between two eager runs" if masked else ""
    noise = [_lines(one) for one in noisy]
    for at, (a, b) in enumerate(zip(lines, others, strict=False)):
        if a.text != b.text:
            return _other_text(at, a, b, lines, noise, eager, compiled, ignored)
    if len(lines) != len(others):
        at = min(len(lines), len(others))
        return _other_text(at, None, None, lines, noise, eager, compiled, ignored)
    largest = _noise(lines, noise)
    is_rounding = False
    for at, (a, b) in enumerate(zip(lines, others, strict=True)):
        for place in _differing(a, b):
            if place in masked:
                continue
            if not _is_explained(a.numbers[place[1]], b.numbers[place[1]], largest.get(place), has_noise=bool(noise)):
                return Printed(_shown(eager, compiled, at), at + 1, ignored=ignored)
            is_rounding = True
    return Printed(is_rounding=is_rounding, ignored=ignored)


def _lines(text: str) -> list[Line]:
    return [Line.of(line) for line in _raw(text)]


def _raw(text: str) -> list[str]:
    return re.split(r"[\r\n]+", text)


def _differing(a: Line, b: Line) -> list[tuple[str, int]]:
    """Places of numbers that differ: the text of the line, and which number of it."""
    return [(a.text, i) for i, (x, y) in enumerate(zip(a.numbers, b.numbers, strict=True)) if x != y]


def _noise(lines: list[Line], noisy: Sequence[list[Line]]) -> dict[tuple[str, int], float]:
    """How far noise has changed a number, at most, in all lines of the same text."""
    found: dict[tuple[str, int], float] = defaultdict(float)
    for run in noisy:
        for a, b in zip(lines, run, strict=False):
            if a.text != b.text:
                break
            for place in _differing(a, b):
                apart = abs(float(a.numbers[place[1]]) - float(b.numbers[place[1]]))
                found[place] = max(found[place], math.inf if math.isnan(apart) else apart)
    return found


def _is_explained(a: str, b: str, noise: float | None, *, has_noise: bool) -> bool:
    if not has_noise:
        return False
    apart = abs(float(a) - float(b))
    if math.isnan(apart):
        return noise == math.inf
    return apart <= LIMITS.noise_factor * (noise or 0.0) + max(_last_place(a), _last_place(b)) * (1 + 1e-9)


def _last_place(number: str) -> float:
    """How much the last printed digit counts; 0 of a whole number, which is not rounded for printing."""
    mantissa, _, exponent = number.lower().partition("e")
    _, dot, digits = mantissa.partition(".")
    return float(10.0 ** (int(exponent or 0) - len(digits))) if dot or exponent else 0.0


def _other_text(
    at: int,
    a: Line | None,
    b: Line | None,
    lines: list[Line],
    noisy: list[list[Line]],
    eager: str,
    compiled: str,
    ignored: str,
) -> Printed:
    """Another line than in eager mode: rounding explains it if noise changes a line there, or before."""
    texts = [one.text for one in lines[: at + 1]]
    if any([one.text for one in run[: at + 1]] != texts or len(run) != len(lines) for run in noisy):
        return Printed(is_rounding=True, ignored=ignored)
    return Printed(_shown(eager, compiled, at), at + 1, ignored=ignored)


def _shown(eager: str, compiled: str, at: int) -> str:
    lines = [raw[at] if at < len(raw) else None for raw in (_raw(eager), _raw(compiled))]
    said = [f"`{line.strip()[:120]}`" if line is not None else "nothing more" for line in lines]
    return f"eager mode prints {said[0]}, compiled code {said[1]}"
