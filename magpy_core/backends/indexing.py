"""Tensors indexed by numbers that vary: ``x[i]``, ``x[i, :, j]``, ``x[i] = y``.

``Tensor.__getitem__`` makes a constant of a symbolic number, so that code would serve one index only. `select` does not, and
its result is the same view. Key function: take_numbers.
"""

from __future__ import annotations

import operator
from typing import Any

import torch
import torch.fx

from magpy_core.backends.emitter import Emitter

INDEXED = (operator.getitem, operator.setitem)


def take_numbers(emit: Emitter, tensor: torch.fx.Node, index: Any) -> tuple[torch.fx.Node, Any] | None:
    """The view of ``tensor`` that the symbolic numbers in ``index`` select, and the index for the rest of it; an Ellipsis
    takes all. None: there are none, or something in it is not known. Numbers select before other tensors index."""
    entries = list(index) if isinstance(index, tuple) else [index]
    widths = [_width(emit, entry) for entry in entries]
    if None in widths or widths.count(_ELLIPSIS) > 1 or not any(_is_symbol(emit, entry) for entry in entries):
        return None
    known = sum(width for width in widths if width is not None and width != _ELLIPSIS)
    dim = emit.fake(tensor).dim()
    if known > dim:
        return None  # too many indices: an error of the program's
    if _ELLIPSIS not in widths:
        dim = known
    rest: list[Any] = []
    left = emit.fake(tensor).dim() - known  # dimensions of the Ellipsis
    for entry, width in zip(reversed(entries), reversed(widths), strict=True):
        dim -= left if width == _ELLIPSIS else width or 0
        if _is_symbol(emit, entry):
            tensor = emit.call(torch.select, tensor, dim, entry)
        else:
            rest.insert(0, entry)
    return tensor, tuple(rest) or ...


_ELLIPSIS = -1


def _is_symbol(emit: Emitter, entry: Any) -> bool:
    return isinstance(entry, torch.fx.Node) and isinstance(emit.fake(entry), torch.SymInt)


def _width(emit: Emitter, entry: Any) -> int | None:
    """How many dimensions an entry of an index is for; None: that is not known."""
    if entry is None:
        return 0
    if entry is ...:
        return _ELLIPSIS
    if isinstance(entry, slice):
        return 1
    if isinstance(entry, list | tuple):
        return 1 if all(type(one) in (int, bool) for one in entry) else None
    value = emit.fake(entry)
    if isinstance(value, torch.Tensor):
        return value.dim() if value.dtype in (torch.bool, torch.uint8) else 1
    return 1 if type(value) is int or isinstance(value, torch.SymInt) else None
