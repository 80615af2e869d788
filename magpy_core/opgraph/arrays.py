"""NumPy arrays that leave a region: how replay makes one of plain numbers again.

Key functions: ``array_like``, ``view_like``, ``view_parts``.
"""

from __future__ import annotations

from typing import Any


def array_like(kept: Any) -> Any:
    """A new array with the numbers and the layout of ``kept``."""
    made = kept.copy(order="K")
    made.flags.writeable = kept.flags.writeable
    return made


def view_like(owner: Any, shape: Any, dtype: Any, offset: int, strides: Any, writeable: bool) -> Any:
    """A view of an array's memory."""
    made = type(owner)(shape, dtype, owner, offset, strides)
    made.flags.writeable = writeable
    return made


def view_parts(owner: Any, view: Any) -> tuple[Any, ...]:
    """What :func:`view_like` makes ``view`` of, but for its owner."""
    offset = view.__array_interface__["data"][0] - owner.__array_interface__["data"][0]
    return (view.shape, view.dtype, offset, view.strides, bool(view.flags.writeable))
