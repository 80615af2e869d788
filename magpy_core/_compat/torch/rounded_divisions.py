"""Divisions that round, and remainders, of floating-point numbers by torch's own kernels.

Inductor (2.11 to 2.15) rounds the quotient, where torch's kernels compute from the exact remainder: ``1.0 // 0.1`` is 10
and not 9, ``-1.0 // inf`` 0 and not -1, ``1.0 % inf`` NaN and not 1, and the sign of a zero is lost. In 16 bits, it
neither rounds a quotient before it is truncated nor the number that `fmod` divides by. Reported as pytorch #197895.

Key function: `exact_divisions`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch

aten = torch.ops.aten
_ROUNDED = (aten.div.Tensor_mode, aten.div.Scalar_mode)
_REMAINDERS = (aten.remainder.Tensor, aten.remainder.Scalar, aten.remainder.Scalar_Tensor)
_TRUNCATED = (aten.fmod.Tensor, aten.fmod.Scalar)  # with 32 and 64 bits they are exact


@contextmanager
def exact_divisions() -> Iterator[None]:
    """While Inductor compiles a graph. Needs the compile lock: it replaces torch's table of operators for all threads."""
    from torch._inductor import lowering

    lowerings: dict[Any, Callable[..., Any]] = lowering.lowerings
    before = {overload: lowerings[overload] for overload in (*_ROUNDED, *_REMAINDERS, *_TRUNCATED) if overload in lowerings}
    lowerings.update({overload: _lowered(overload, lower) for overload, lower in before.items()})
    try:
        yield
    finally:
        lowerings.update(before)


def _lowered(overload: Any, lower: Callable[..., Any]) -> Callable[..., Any]:
    from torch._inductor.lowering import fallback_handler

    kernel = fallback_handler(overload, add_to_fallback_set=False)

    def divide(*args: Any, **kwargs: Any) -> Any:
        is_exact = _is_exact(overload, args, kwargs)
        return lower(*args, **kwargs) if is_exact else kernel(*args, **kwargs)

    divide._inductor_lowering_function = True  # type: ignore[attr-defined]
    return divide


def _is_exact(overload: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Whether Inductor's own code has the results of torch's kernel."""
    if overload in _ROUNDED and kwargs.get("rounding_mode") is None:
        return True
    dtypes = [value.get_dtype() for value in args if hasattr(value, "get_dtype")]
    if overload in _TRUNCATED:
        return not any(dtype in (torch.float16, torch.bfloat16) for dtype in dtypes)
    return not any(dtype.is_floating_point for dtype in dtypes) and not any(isinstance(value, float) for value in args)
