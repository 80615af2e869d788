"""How much an optimizer makes of rounding: how far its updates of parameters are from the eager run's, beside how far the
gradients were. Key type: Amplified; key function: amplified.

A gradient that is zero except for rounding has another sign in each run, and an optimizer that divides by the gradient's
size makes whole updates of it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from magpy_core.limits import LIMITS
from magpy_core.verification.difference import elementwise

#: What runner/recorder.py saves of a step: of each optimizer ``kind``, and ``gradients``, ``updates`` and ``sizes`` by name.
Updates = Sequence[Mapping[str, Any]]


@dataclass(frozen=True)
class Amplified:
    """``factor``: how many times further the updates of this ``step`` are apart than the gradients were until then, each
    relative to its norm."""

    optimizer: str
    step: int
    factor: float


def amplified(steps: Mapping[int, tuple[Updates, Updates]]) -> Amplified | None:
    """The optimizer and the step with the largest factor, if it is at least ``LIMITS.amplified``. ``steps``: of the eager
    run and of the compiled one, in the order of steps."""
    found: list[Amplified] = []
    gradients: dict[int, float] = {}
    for step, (eager, compiled) in steps.items():
        for number, (one, other) in enumerate(zip(eager, compiled, strict=False)):
            if one["kind"] != other["kind"]:
                continue
            gradients[number] = max(gradients.get(number, 0.0), _apart(one["gradients"], other["gradients"]))
            stored = math.sqrt(sum(size * size for size in one["sizes"].values()))
            by_update = _apart(one["updates"], other["updates"], stored)
            if 0.0 < gradients[number] < math.inf and by_update < math.inf:
                found.append(Amplified(str(one["kind"]), step, by_update / gradients[number]))
    largest = max(found, key=lambda one: one.factor, default=None)
    return largest if largest is not None and largest.factor >= LIMITS.amplified else None


def _apart(eager: Mapping[str, torch.Tensor], other: Mapping[str, torch.Tensor], rounding: float = 0.0) -> float:
    """The norm of the difference, without as much ``rounding``, as a part of the norm of ``eager``."""
    pairs = list(_pairs(eager, other))
    size = math.sqrt(sum(float(one.double().square().sum()) for one, _ in pairs))
    difference = math.sqrt(sum(float(elementwise(one, two).square().sum()) for one, two in pairs))
    return max(0.0, difference - rounding) / size if size else 0.0


def _pairs(eager: Mapping[str, Any], other: Mapping[str, Any]) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    for name, one in eager.items():
        if (two := other.get(name)) is not None and one.shape == two.shape and one.dtype == two.dtype:
            yield one, two
