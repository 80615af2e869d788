"""Caches by objects of the program (classes, code objects), which these caches do not keep alive. Key functions: by_object,
class_by_object, made_once.

Keys are identities: hashing or comparing a class may run code of its metaclass, and equal code objects are not the same. An
entry goes when its object dies, before another object can have its id.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any, TypeVar

_K = TypeVar("_K")
_T = TypeVar("_T")


def _weak_table() -> tuple[dict[int, tuple[Any, Any]], Callable[[Any, Any], None]]:
    """An empty table by id, and a function that adds a result for an object."""
    table: dict[int, tuple[Any, Any]] = {}

    def add(obj: Any, result: Any) -> None:
        key = id(obj)

        def forget(dead: Any) -> None:
            if (now := table.get(key)) is not None and now[0] is dead:
                del table[key]

        table[key] = weakref.ref(obj, forget), result

    return table, add


def by_object(find: Callable[[_K], _T]) -> Callable[[_K], _T]:
    """Caches the results of ``find``, which must not refer to its argument."""
    table, add = _weak_table()
    get = table.get

    def cached(obj: _K) -> _T:
        known = get(id(obj))
        if known is not None:
            result: _T = known[1]
            return result
        result = find(obj)
        add(obj, result)
        return result

    return cached


def class_by_object(find: Callable[[_K], type | None]) -> Callable[[_K], type | None]:
    """Caches the results of ``find``: its argument, a class that lives as long (a base), or None."""

    def referred(obj: _K) -> weakref.ref[type] | None:
        result = find(obj)
        return None if result is None else weakref.ref(result)

    weakly: Callable[[_K], weakref.ref[type] | None] = by_object(referred)

    def cached(obj: _K) -> type | None:
        found = weakly(obj)
        return None if found is None else found()

    return cached


def made_once(make: Callable[[_K], _T]) -> Callable[[_K], _T]:
    """The same result of ``make`` while anybody has it; it keeps its argument alive."""
    made: dict[int, Any] = {}

    def cached(obj: _K) -> _T:
        key = id(obj)
        known: _T | None = made[key]() if key in made else None
        if known is not None:
            return known
        result = make(obj)

        def forget(dead: Any) -> None:
            if made.get(key) is dead:
                del made[key]

        made[key] = weakref.ref(result, forget)
        return result

    return cached
