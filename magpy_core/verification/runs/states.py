"""Compares states of runs: tensors by name. Key type: Compared; key functions: compare, distance."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from magpy_core.verification.difference import Difference, Values, difference, elementwise

State = Mapping[str, Any]


@dataclass(frozen=True)
class Compared:
    """``is_equal``: all bits are. ``by_code`` and ``by_noise``: how far all parameters and buffers together are from the
    eager run's, relative to their norm; ``where``: the tensor with the largest share of that. ``worst``: a difference that
    rounding does not explain."""

    is_equal: bool
    by_code: float = 0.0
    by_noise: float = 0.0
    where: str = ""
    worst: Difference | None = None


def compare(eager: State, compiled: State, noisy: Sequence[State] = ()) -> Compared:
    noise = max((distance(eager, one)[0] for one in noisy), default=0.0)
    if same_bits(eager, compiled):
        return Compared(is_equal=True, by_noise=noise)
    shared = [name for name in eager if name in compiled]
    a, b = (Values({name: state[name] for name in shared}) for state in (eager, compiled))

    def run(seed: int) -> Values:
        return Values({name: noisy[seed].get(name) for name in shared})  # IndexError: no more runs

    by_code, where = distance(eager, compiled)
    return Compared(False, by_code, noise, where, difference(a, b, run))


def distance(one: State, other: State) -> tuple[float, str]:
    """The norm of the difference, as a part of the norm of ``one``, over the model's tensors, or over all if these are
    equal; and the tensor with the largest share. A tensor alone would say less: gradients that are zero except for rounding
    make the averages of Adam differ by more than they are. Names of an optimizer's state end in a parenthesis."""
    names = [name for name in one if name in other and _is_compared(one[name], other[name])]
    for chosen in ([name for name in names if not name.endswith(")")], names):
        parts = {name: float(elementwise(one[name], other[name]).square().sum()) for name in chosen}
        if total := sum(parts.values()):
            size = sum(float(one[name].double().abs().nan_to_num(0.0).square().sum()) for name in chosen)
            return math.sqrt(total / size) if size else math.inf, max(parts, key=lambda name: parts[name])
    return 0.0, ""


def _is_compared(a: Any, b: Any) -> bool:
    if not isinstance(a, torch.Tensor) or not isinstance(b, torch.Tensor):
        return False
    return a.shape == b.shape and a.dtype == b.dtype and a.is_floating_point() and a.layout is torch.strided


def same_bits(one: State, other: State) -> bool:
    """Whether the tensors that both have are equal, bit by bit."""
    return all(_same(one[name], other[name]) for name in one.keys() & other.keys())


def _same(a: Any, b: Any) -> bool:
    if not isinstance(a, torch.Tensor) or not isinstance(b, torch.Tensor):
        return type(a) is type(b) and bool(a == b)
    if a.shape != b.shape or a.dtype != b.dtype or a.layout is not b.layout:
        return False
    if a.layout is not torch.strided:
        a, b = a.to_dense(), b.to_dense()
    if torch.equal(a, b) and not a.is_floating_point():
        return True
    bits = [one.detach().resolve_conj().resolve_neg().contiguous().flatten().view(torch.uint8) for one in (a, b)]
    return torch.equal(*bits)
