"""Rounding noise inside of single operations. Key type: NoisyInside.

Noise in the last place of a result does not show what its computation has rounded where that cancels. The
logarithm of a softmax is nearly zero for a class that is nearly certain: then the sum inside is nearly one, and rounding
the sum changes the result by more than its last place. So one operation is computed in the steps of compiled code, each
with noise: in float64, where a square neither overflows nor vanishes, so that compiled code that does so is not excused.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from magpy_core._compat.torch.decompositions import of_operation
from magpy_core._compat.torch.every_operation import EveryOperation
from magpy_core.limits import LIMITS

_SUMS = frozenset("mean sum std var var_mean".split())
#: Only these round: others select, move, compare or make elements.
_ROUNDED = _SUMS | frozenset(
    "add addcdiv addcmul cos cosh div erf erfc exp exp2 expm1 log log10 log1p log2 mul pow reciprocal rsqrt rsub sigmoid sin"
    " sinh sqrt sub tan tanh".split()
)


def may_look_inside(target: Any) -> bool:
    """Whether the mode may be entered for a node with this target. In a mode, some of torch's backward formulas compute
    otherwise than without (`cumprod_backward`), as when they are compiled: what is wrong there must not be excused."""
    if isinstance(target, torch._ops.OpOverload | torch._ops.OpOverloadPacket):
        return target in of_operation()
    return target is not torch.autograd.grad


class NoisyInside(EveryOperation):
    """A mode, entered by ``with``. ``generator``: of the noise."""

    def __init__(self, generator: torch.Generator) -> None:
        super().__init__(self._operation)
        self._generator = generator
        self._is_inside, self._eps = False, 0.0

    def _operation(self, func: Any, args: Any, kwargs: Any) -> Any:
        if self._is_inside:
            return self._step(func, args, kwargs)
        result = func(*args, **kwargs)
        steps = of_operation().get(func)
        given = [one for one in (*args, *kwargs.values()) if isinstance(one, torch.Tensor)]
        if steps is None or not all(map(_is_plain, given)):
            return result
        self._is_inside, self._eps = True, _eps(given)
        try:
            with self, torch.autocast("cpu", enabled=False):
                rounded = steps(*map(_exact, args), **{name: _exact(value) for name, value in kwargs.items()})
        except Exception:  # of these arguments there are no steps: the result has the noise of its last place
            return result
        finally:
            self._is_inside = False
        _take_over(result, rounded)
        return result

    def _step(self, func: Any, args: Any, kwargs: Any) -> Any:
        result = func(*args, **kwargs)
        name = func._schema.name.partition("::")[2]
        given = [one for one in (*args, *kwargs.values()) if isinstance(one, torch.Tensor)]
        if name not in _ROUNDED or all(_is_whole(one) for one in given):
            return result
        count = max((one.numel() for one in given), default=1)
        for value in result if isinstance(result, tuple) else (result,):
            if _is_plain(value) and value.is_floating_point():
                units = LIMITS.noise_of_sums * min(count // max(1, value.numel()), LIMITS.most_summands)
                self._round(value, max(1.0, units) if name in _SUMS else 1.0)
        return result

    def _round(self, value: torch.Tensor, units: float) -> None:
        random = torch.rand(value.shape, generator=self._generator).mul_(2).sub_(1).mul_(units * self._eps)
        value.add_(torch.where(torch.isfinite(value), value * random.to(value.dtype), 0.0))


def _is_plain(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.layout is torch.strided and value.device.type == "cpu"


def _exact(value: Any) -> Any:
    return value.double() if isinstance(value, torch.Tensor) and value.is_floating_point() else value


def _eps(tensors: Sequence[torch.Tensor]) -> float:
    """Of the numbers in which an operation on these is computed: of short ones, in float32."""
    places = [torch.finfo(one.dtype).eps for one in tensors if one.is_floating_point()]
    return min(*places, torch.finfo(torch.float32).eps) if places else 0.0


def _is_whole(value: torch.Tensor) -> bool:
    """Whether all elements are whole numbers: sums and products of them are exact."""
    return not value.is_floating_point() or bool((value == value.round()).all())


def _take_over(result: Any, rounded: Any) -> None:
    """Writes what was ``rounded`` into ``result``, in its own memory; what is not finite in one of them stays as it is."""
    if isinstance(result, tuple | list):
        for one, other in zip(result, rounded, strict=True):
            _take_over(one, other)
    elif _is_plain(result) and result.is_floating_point() and _is_plain(rounded) and result.shape == rounded.shape:
        other = rounded.to(result.dtype)
        result.copy_(torch.where(torch.isfinite(result) & torch.isfinite(other), other, result))
