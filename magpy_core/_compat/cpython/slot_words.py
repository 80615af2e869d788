"""Pointers in functions, classes and cells to their values: ``__code__``, ``__defaults__``, ``__kwdefaults__``, ``__mro__``
and a cell's content. Such a word of memory is the address of the value, so one native comparison of many words shows that
none was replaced. No offset is assumed: each is found by searching for a known value, and verified by storing another one.
Key function: slot.
"""

from __future__ import annotations

import functools
import types
from typing import Any

from magpy_core._compat.cpython.dict_tags import word

_FIRST = 16  # after the reference count and the type


def slot(owner: Any, name: str) -> tuple[int, Any] | None:
    """The address of the pointer to ``owner.name``, and its current value: for a function's ``__code__``, ``__defaults__``
    and ``__kwdefaults__``, a class's ``__mro__``, a cell's ``cell_contents``. None if there is no known pointer. Raises
    ValueError for an empty cell."""
    kind: type = type if issubclass(type(owner), type) else type(owner)
    offset = _offset(kind, name)
    if offset is None:
        return None
    value = _get(kind, owner, name)
    address = id(owner) + offset
    return (address, value) if word(address) == (0 if value is None else id(value)) else None


def _get(kind: type, owner: Any, name: str) -> Any:
    return kind.__dict__[name].__get__(owner)


@functools.cache
def _offset(kind: type, name: str) -> int | None:
    probe = _probes().get((kind, name))
    if probe is None:
        return None
    owner, changed, other = probe
    value = _get(kind, owner, name)
    places = [o for o in range(_FIRST, kind.__basicsize__, 8) if word(id(owner) + o) == id(value)]
    if len(places) != 1:
        return None
    setattr(owner, changed, other)
    now = _get(kind, owner, name)
    return places[0] if now is not value and word(id(owner) + places[0]) == id(now) else None


def _probes() -> dict[tuple[type, str], tuple[Any, str, Any]]:
    """For each pointer: an object that has it, and the attribute and value to set so that the pointer changes."""

    def function(a: int = 1, *, b: int = 2) -> tuple[int, int]:
        return a, b

    def other(a: int = 3, *, b: int = 4) -> int:
        return a - b

    class Base:
        pass

    class OtherBase:
        pass

    class Probe(Base):
        pass

    of_functions = ("__code__", "__defaults__", "__kwdefaults__")
    return {(types.FunctionType, name): (function, name, getattr(other, name)) for name in of_functions} | {
        (type, "__mro__"): (Probe, "__bases__", (OtherBase,)),
        (types.CellType, "cell_contents"): (types.CellType(object()), "cell_contents", object()),
    }
