"""Folds: what ``sum``, ``max`` and ``min`` make of a list or deque of numbers from outside, however many it has.

Key functions: fold, kept, numbers_in.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any

from magpy_core.refgraph.kinds import NUMBER_TYPES

_PARTS = NUMBER_TYPES | {bool}
FOLDS: dict[str, Any] = {"sum": sum, "max": max, "min": min}
#: Whether ``sum`` adds one number after the other; later versions of Python add rounding errors up.
SUM_IS_PLAIN = sum([1e100, 1.0, -1e100]) == 0.0


def kept(values: Sequence[Any], added: int, maxlen: int | None) -> Sequence[Any]:
    """Those of ``values`` that stay when as many elements are ``added``."""
    return values if maxlen is None else list(values)[max(0, len(values) + added - maxlen) :]


def fold(values: Any, key: tuple[str, int, type]) -> Any:
    """The number that ``key`` (name of the function, how many elements will be added, their type) makes of the list or deque
    ``values``; None if there is no element, or one of another type."""
    name, added, kind = key
    elements = kept(values, added, values.maxlen if type(values) is deque else None)
    if not elements or any(type(element) is not kind for element in elements):
        return None
    return FOLDS[name](elements)


def numbers_in(values: Any) -> tuple[Any, ...]:
    """The numbers that a list, tuple or deque holds. Raises LookupError for anything else."""
    if type(values) not in (list, tuple, deque) or not _PARTS.issuperset(map(type, values)):
        raise LookupError("not a list of numbers")
    return tuple(values)
