"""Operations by torch's own kernels on a CPU, where Inductor's code is wrong for some values only: no comparison of one
call finds that.

Inductor (2.13 to 2.15) reads unused lanes of a vector of bytes in `min` and its kin, so that the smallest of positive ones
is 0 (pytorch #191499). It computes `sinh` and `cosh` from an exponential, which is infinite before they are (#183763,
#183765). And a product of small matrices that is multiplied by 0, or added to something multiplied by 0, takes over its NaN
(#196596). A negative padding of what is computed in the same graph reads memory that was never written, which may hold the
right values by chance (#195582).

Key function: `own_kernels`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch

aten = torch.ops.aten
_EXTREMES = (
    *(aten.amin.default, aten.amax.default, aten.min.default, aten.max.default, aten.min.dim, aten.max.dim),
    *(aten.argmin.default, aten.argmax.default),
)
_PADDED = (aten.constant_pad_nd.default,)
_HYPERBOLIC = (aten.sinh.default, aten.cosh.default)


@contextmanager
def own_kernels() -> Iterator[None]:
    """While Inductor compiles a graph. Needs the compile lock: it replaces torch's tables of operators for all threads."""
    from torch._inductor import decomposition, lowering

    lowerings: dict[Any, Callable[..., Any]] = lowering.lowerings
    tables = (decomposition.decompositions, decomposition.fast_random_decomps())
    before = {overload: lowerings[overload] for overload in (*_EXTREMES, *_HYPERBOLIC, *_PADDED) if overload in lowerings}
    products = [table.get(aten.addmm.default) for table in tables]
    lowerings.update({overload: _lowered(overload, lower) for overload, lower in before.items()})
    for table, product in zip(tables, products, strict=True):
        if product is not None:
            table[aten.addmm.default] = _decomposed(product)
    try:
        yield
    finally:
        lowerings.update(before)
        for table, product in zip(tables, products, strict=True):
            if product is not None:
                table[aten.addmm.default] = product


def _lowered(overload: Any, lower: Callable[..., Any]) -> Callable[..., Any]:
    from torch._inductor.lowering import fallback_handler

    kernel = fallback_handler(overload, add_to_fallback_set=False)

    def compute(x: Any, *args: Any, **kwargs: Any) -> Any:
        return (kernel if _is_wrong(overload, x, *args) else lower)(x, *args, **kwargs)

    compute._inductor_lowering_function = True  # type: ignore[attr-defined]
    return compute


def _is_wrong(overload: Any, x: Any, *args: Any) -> bool:
    """Whether Inductor's own code may differ from torch's kernel."""
    device = x.get_device() if hasattr(x, "get_device") else None
    is_on_cpu = device is not None and device.type == "cpu"
    if overload in _PADDED:
        return is_on_cpu and any(type(n) is not int or n < 0 for n in args[0])
    return is_on_cpu and (overload in _HYPERBOLIC or x.get_dtype() in (torch.int8, torch.uint8))


def _decomposed(product: Callable[..., Any]) -> Callable[..., Any]:
    def decompose(*args: Any, **kwargs: Any) -> Any:
        factors = (kwargs.get("beta", 1), kwargs.get("alpha", 1))
        known = all(type(factor) in (int, float, complex) and factor != 0 for factor in factors)
        return product(*args, **kwargs) if known else NotImplemented

    return decompose
