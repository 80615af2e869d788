"""NVIDIA's library of mathematical functions, which the interpreter of Triton does not have, by PyTorch on the CPU.

Key function: supply. Private Triton: only these tests run kernels by the interpreter.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
import triton.language as tl
from triton.language.extra import libdevice
from triton.runtime.interpreter import TensorHandle

_SAME_NAME = (
    "acos acosh asin asinh atan atan2 atanh ceil copysign cos cosh erf erfc erfinv exp exp2 expm1 floor fmod hypot lgamma"
    " log log10 log1p log2 nextafter pow rsqrt sin sinh sqrt tan tanh trunc"
).split()
_OTHER_NAME: dict[str, Callable[..., torch.Tensor]] = {
    "abs": torch.abs,
    "fast_tanhf": torch.tanh,
    "add_rn": torch.add,
    "div_rn": torch.div,
    "isinf": torch.isinf,
    "isnan": torch.isnan,
    "ldexp": lambda value, exponent: (value.double() * torch.exp2(exponent.double())).to(value.dtype),
    "llrint": lambda value: torch.round(value).to(torch.int64),
    "mul_rn": torch.mul,
    "nearbyint": torch.round,
    "rint": torch.round,
    "rcp_rn": torch.reciprocal,
    "signbit": torch.signbit,
    "sqrt_rn": torch.sqrt,
    "sub_rn": torch.sub,
}
_TYPES = {torch.bool: tl.int1, torch.int64: tl.int64}


def supply() -> None:
    """Replaces the functions of `libdevice` in this process."""
    functions = {name: getattr(torch, name) for name in _SAME_NAME} | _OTHER_NAME
    for name, function in functions.items():
        assert hasattr(libdevice, name), name
        setattr(libdevice, name, _elementwise(function))


def _elementwise(function: Callable[..., torch.Tensor]) -> Callable[..., Any]:
    def call(*args: Any) -> Any:
        first = next(arg for arg in args if isinstance(arg, tl.tensor))
        given = [
            arg.handle.data if isinstance(arg, tl.tensor) else np.asarray(arg, dtype=first.handle.data.dtype) for arg in args
        ]
        result = function(*(torch.from_numpy(np.array(each)) for each in np.broadcast_arrays(*given)))
        element = _TYPES.get(result.dtype, first.dtype.scalar)
        whole = element if not first.type.is_block() else tl.block_type(element, list(result.shape))
        return tl.tensor(TensorHandle(result.numpy(), element), whole)

    return call
