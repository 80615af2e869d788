"""The operator `magpy::hoist`: an identity on a 0-d tensor that Inductor computes once, in a kernel of its own.

Inductor inlines pointwise producers into their consumers' loops. For ``1 - beta ** step`` that is a float64 pow for every
element of every parameter (measured: an AdamW step 3x slower). Key function: `registered`.
"""

from __future__ import annotations

import functools
from typing import Any

import torch

_LIBRARY = torch.library.Library("magpy", "DEF")
_LIBRARY.define("hoist(Tensor x) -> Tensor")
_LIBRARY.impl("hoist", lambda x: x.clone(), "CompositeExplicitAutograd")
_LIBRARY.impl("hoist", lambda x: torch.empty_like(x), "Meta")


@functools.cache
def registered() -> Any:
    """The operator, which Inductor is taught on first use: importing Inductor takes a second."""
    from torch._inductor.lowering import clone
    from torch._inductor.lowering import register_lowering as register

    def lowering(x: Any) -> Any:
        result = clone(x)
        result.realize()
        return result

    hoist: Any = torch.ops.magpy.hoist.default
    register(hoist, type_promotion_kind=None)(lowering)
    return hoist
