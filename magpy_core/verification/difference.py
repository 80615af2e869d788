"""Whether two runs of a graph differ by more than rounding explains. Key types: Values, Difference;
functions: difference, apart."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from magpy_core.limits import LIMITS

#: Runs the graph once more with noise; the number is the seed.
NoisyRun = Callable[[int], "Values"]


@dataclass(frozen=True)
class Values:
    """What one run of a graph gives. ``named``: each value with what it is (``result 0``, ``written input 3``,
    ``gradient of input 1``)."""

    named: dict[str, Any]


@dataclass(frozen=True)
class Difference:
    """``what`` differs; ``text``: how. ``largest``: the largest absolute difference of an element; ``explained``: the
    largest that rounding explains; both None if what differs is no number."""

    what: str
    text: str
    largest: float | None = None
    explained: float | None = None


def difference(eager: Values, compiled: Values, noisy: NoisyRun | None) -> Difference | None:
    """The worst difference between two runs; None if rounding explains all of them. A noisy run that raises explains
    nothing. ``noisy`` None: rounding explains nothing."""
    suspects = {}
    for what in eager.named | compiled.named:
        if what not in compiled.named or what not in eager.named:
            return Difference(what, f"exists only in {'eager mode' if what in eager.named else 'compiled code'}")
        found = _compared(what, eager.named[what], compiled.named[what], exact=noisy is None)
        if found is not None and found.largest is None:
            return found
        if found is not None:
            suspects[what] = found
    runs: list[Values] = []
    for seed in range(LIMITS.noisy_runs if noisy is not None else 0):
        if not suspects or noisy is None:
            break
        try:
            runs.append(noisy(seed))
        except Exception:
            continue
        for what in list(suspects):
            value, other = eager.named[what], compiled.named[what]
            if _is_explained(value, other, [run.named.get(what) for run in runs]):
                del suspects[what]
    return max(suspects.values(), key=lambda one: one.largest or 0.0, default=None)


def apart(eager: Values, compiled: Values) -> float:
    """The largest difference of an element that both runs give, as a part of its tensor's largest element."""
    largest = 0.0
    for what in eager.named.keys() & compiled.named.keys():
        a, b = (_as_tensor(values.named[what]) for values in (eager, compiled))
        if a is None or b is None or a.shape != b.shape or not a.numel():
            continue
        values = _as_double(a).abs()
        finite = values[torch.isfinite(values)]
        scale = float(finite.max()) if finite.numel() else 0.0
        difference = float(elementwise(a, b).max())
        largest = max(largest, difference / scale if scale else difference)
    return largest


def _as_tensor(value: Any) -> torch.Tensor | None:
    if type(value) in (bool, int, float):
        return torch.tensor(value, dtype=_dtype(value))
    return value if isinstance(value, torch.Tensor) else None


def _compared(what: str, eager: Any, compiled: Any, *, exact: bool = False) -> Difference | None:
    if not isinstance(eager, torch.Tensor) or not isinstance(compiled, torch.Tensor):
        return _of_others(what, eager, compiled, exact=exact)
    kinds = [(tuple(t.shape), t.dtype, t.device) for t in (eager, compiled)]
    if kinds[0] != kinds[1]:
        return Difference(what, f"is a {_described(compiled)}, not a {_described(eager)}")
    if torch.equal(eager, compiled):
        return None
    by_element = elementwise(eager, compiled)
    largest = float(by_element.max())
    if not eager.dtype.is_floating_point and not eager.dtype.is_complex:
        count, elements = int((by_element != 0).sum()), by_element.numel()
        return Difference(what, f"differs in {count:,} of {elements:,} elements", largest, 0.0) if count else None
    few = 0.0 if exact else units(eager, LIMITS.units_in_last_place)
    if largest <= few:
        return None
    return Difference(what, _text(largest, eager), largest, few)


def _of_others(what: str, eager: Any, compiled: Any, *, exact: bool) -> Difference | None:
    a, b = _as_tensor(eager), _as_tensor(compiled)
    if a is not None and b is not None and type(eager) is type(compiled):
        return _compared(what, a, b, exact=exact)
    if eager is None and compiled is None:
        return None
    return Difference(what, f"is {type(compiled).__name__}, not {type(eager).__name__}")


def _dtype(value: bool | int | float) -> torch.dtype:
    return torch.float32 if type(value) is float else torch.bool if type(value) is bool else torch.int64


def _is_explained(eager: Any, compiled: Any, noisy: Sequence[Any]) -> bool:
    """Whether the noisy runs are as far from eager mode as compiled code is."""
    if not isinstance(eager, torch.Tensor):
        eager, compiled = (torch.tensor(value, dtype=_dtype(value)) for value in (eager, compiled))
        noisy = [None if value is None else torch.tensor(value, dtype=_dtype(value)) for value in noisy]
    largest, mean, by_code = 0.0, 0.0, elementwise(eager, compiled)
    for other in noisy:
        if other is None or other.shape != eager.shape or other.dtype != eager.dtype:
            return True  # rounding changes its shape
        by_noise = elementwise(eager, other)
        largest, mean = max(largest, float(by_noise.max())), max(mean, _root_mean_square(by_noise))
    few = units(eager, LIMITS.units_in_last_place)
    is_near = float(by_code.max()) <= LIMITS.noise_factor * largest + few
    return is_near and _root_mean_square(by_code) <= LIMITS.noise_factor * mean + few


def elementwise(eager: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    """How far the elements are apart; infinite where only one of them is not finite, or they are so in another way. Whole
    numbers and answers are 1 apart where they are not equal: not all are exact as floating-point numbers."""
    with torch.no_grad():
        if not (eager.dtype.is_floating_point or eager.dtype.is_complex):
            return (eager.detach() != other.detach()).double()
        a, b = (_as_double(tensor) for tensor in (eager, other))
        same = (a == b) | (torch.isnan(a) & torch.isnan(b))
        apart = torch.where(same, torch.zeros_like(a), (a - b).abs())
        return torch.where(torch.isnan(apart), torch.full_like(apart, math.inf), apart)


def _as_double(tensor: torch.Tensor) -> torch.Tensor:
    value = tensor.detach()
    if value.layout is not torch.strided:
        value = value.to_dense()
    return torch.view_as_real(value.resolve_conj()).double() if value.is_complex() else value.double()


def units(tensor: torch.Tensor, number: float) -> float:
    """So many units in the last place of its largest element; 0 for whole numbers."""
    if not (tensor.dtype.is_floating_point or tensor.dtype.is_complex):
        return 0.0
    values = _as_double(tensor).abs()
    finite = values[torch.isfinite(values)]
    scale = float(finite.max()) if finite.numel() else 0.0
    kind = torch.finfo(tensor.dtype)
    return float(number * kind.eps * max(scale, kind.tiny))  # below ``tiny``, places stay as they are


def _root_mean_square(apart: torch.Tensor) -> float:
    return float(apart.square().mean().sqrt()) if apart.numel() else 0.0


def _described(tensor: torch.Tensor) -> str:
    return f"{str(tensor.dtype).removeprefix('torch.')} tensor of shape {list(tensor.shape)} on {tensor.device}"


def _text(largest: float, eager: torch.Tensor) -> str:
    values = _as_double(eager).abs()
    finite = values[torch.isfinite(values)]
    scale = float(finite.max()) if finite.numel() else 0.0
    how = "is infinite or NaN in other elements" if math.isinf(largest) else f"differs by up to {largest:.3g}"
    return f"{how} (its largest element is {scale:.3g})"
