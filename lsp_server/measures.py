"""Figures of two reports, and which of them got worse. Key types: Measure, Change. Key function: changes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

T = TypeVar("T")


@dataclass(frozen=True)
class Measure(Generic[T]):
    """One figure of a region, of the step or of kernels. It is worse if it rose by more than the threshold and by at least
    ``least``.

    ``exact`` figures do not vary between runs of the same program: any rise is worse. ``judged`` False: display only.
    """

    label: str
    value: Callable[[T], float | None]
    least: float = 0.0
    exact: bool = False
    judged: bool = True
    unit: str = ""


@dataclass(frozen=True)
class Change:
    """A figure that differs (for a measured one: beyond noise)."""

    label: str
    unit: str
    old: float
    new: float
    worse: bool

    @property
    def ratio(self) -> float | None:
        return self.new / self.old if self.old else None

    def to_json(self) -> dict[str, Any]:
        shown = {"what": self.label, "unit": self.unit, "old": self.old, "new": self.new}
        return {**shown, "ratio": self.ratio, "worse": self.worse}


def changes(measures: Iterable[Measure[T]], old: T, new: T, threshold: float) -> tuple[Change, ...]:
    return tuple(c for m in measures if (c := _change(m, old, new, threshold)) is not None)


def _change(measure: Measure[T], old: T, new: T, threshold: float) -> Change | None:
    a, b = measure.value(old), measure.value(new)
    if a is None or b is None or a == b:
        return None
    if measure.unit and (abs(b - a) < measure.least or abs(b - a) <= threshold * a):
        return None  # noise
    rose = b > a and (measure.exact or b - a > threshold * a)
    return Change(measure.label, measure.unit, a, b, rose and measure.judged)
