"""Writes that leave a compiled graph with another layout than the tensor has.

A compiler makes a new tensor of each write. Where that tensor's strides don't follow the written one's, everything computed
from it afterwards has other strides than in plain Python, and draws go to other elements. Key function: `keeps_layout`.
"""

from __future__ import annotations

from magpy_core.knowledge.operators import Fact, named

_KEEPS = named(Fact.KEEPS_LAYOUT)


def keeps_layout(name: str, *, masked: bool) -> bool:
    """Whether what a compiler makes of a write of this name has the written tensor's strides, whichever they are.
    ``masked``: it is given a tensor of bool."""
    plain = name.removeprefix("_foreach_").strip("_")
    return plain in _KEEPS and not (masked and plain in ("setitem", "index_put"))
