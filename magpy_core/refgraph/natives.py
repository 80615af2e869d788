"""Natives: the contents of a container, read with the built-in methods even if the program's class overrides them.

Guards and the monitor must not run the program's ``__len__`` or ``__iter__``.
Key functions: length, elements, entries, item.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Iterator
from itertools import islice
from typing import Any

from magpy_core.refgraph.kinds import is_a

_BASES: tuple[Any, ...] = (list, tuple, OrderedDict, dict, set, frozenset, deque)


def _base(obj: Any) -> Any:
    return next((base for base in _BASES if is_a(obj, base)), None)


def length(obj: Any) -> int:
    base = _base(obj)
    return len(obj) if base is None else base.__len__(obj)


def elements(obj: Any) -> Iterator[Any]:
    """The elements of a container, the keys of a dict."""
    base = _base(obj)
    return iter(obj) if base is None else base.__iter__(obj)


def keys(obj: Any) -> Iterator[Any]:
    """The keys of a dict, or the elements of a set, in any order: to iterate in order, an OrderedDict looks up each key."""
    return dict.__iter__(obj) if is_a(obj, dict) else elements(obj)


def entries(obj: Any) -> list[tuple[Any, Any]]:
    """Keys and values, in iteration order (an OrderedDict's order may differ from that of its underlying dict)."""
    return list(OrderedDict.items(obj) if is_a(obj, OrderedDict) else dict.items(obj))


def values(obj: Any) -> list[Any]:
    return [value for _, value in entries(obj)]


def nth(obj: Any, index: int) -> Any:
    """The element at this index in the order of ``elements``."""
    for value in islice(elements(obj), index, None):
        return value
    raise IndexError(index)


def item(obj: Any, index: int) -> Any:
    base = _base(obj)
    return obj[index] if base is None else base.__getitem__(obj, index)
