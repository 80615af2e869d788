"""Functions of torch that look at a tensor's values to find out what an argument can say. Key function: how_to_avoid."""

from __future__ import annotations

import types

from torch.nn.modules import transformer

_CAUSAL = (
    "If the mask is always causal, pass `is_causal=True` (to a decoder, `tgt_is_causal`), else False: then torch does "
    "not read the mask's values."
)
_AVOIDED_BY = {
    function.__code__: hint
    for function, hint in ((getattr(transformer, "_detect_is_causal_mask", None), _CAUSAL),)
    if isinstance(function, types.FunctionType)  # another version of torch may have no such function
}


def how_to_avoid(code: types.CodeType) -> str:
    """What the caller can pass so that ``code`` tests no values; empty if nothing is known."""
    return _AVOIDED_BY.get(code, "")
