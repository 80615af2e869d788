"""Fields: the attributes, slots and cells of an object, read without running any of its code.

Key functions: instance_dict, slot_names, slot_value, cell_value.
"""

from __future__ import annotations

import types
from typing import Any

from magpy_core._compat.cpython.weak_caches import by_object
from magpy_core.refgraph.kinds import is_a, is_heap_type

ABSENT: Any = type("ABSENT", (), {"__repr__": lambda self: "<absent>"})()


def instance_dict(obj: Any) -> dict[str, Any] | None:
    """The instance ``__dict__`` without running user code; None if there is none or its type is not exactly dict."""
    d = _own_dict(obj)
    return d if type(d) is dict else None


def custom_dict(obj: Any) -> dict[Any, Any] | None:
    """The instance ``__dict__`` if it is a subclass of dict: the object itself, after ``self.__dict__ = self``."""
    d = _own_dict(obj)
    return d if is_a(d, dict) and type(d) is not dict else None


def _own_dict(obj: Any) -> Any:
    if is_a(obj, (type, types.FunctionType, types.BuiltinFunctionType)):
        return None
    try:
        return object.__getattribute__(obj, "__dict__")
    except AttributeError:
        return None


# Members by which classes written in C describe the layout of their objects to the interpreter.
_LAYOUT = frozenset({"__vectorcalloffset__", "__dictoffset__", "__weaklistoffset__"})


@by_object
def slot_names(tp: type) -> tuple[str, ...]:
    """Names of ``__slots__`` members along the MRO of a Python class."""
    return tuple(
        n
        for k in tp.__mro__
        if is_heap_type(k)
        for n, v in k.__dict__.items()
        if is_a(v, types.MemberDescriptorType) and n not in _LAYOUT
    )


def slot_value(obj: Any, name: str) -> Any:
    for k in type(obj).__mro__:
        member: Any = k.__dict__.get(name)
        if is_a(member, types.MemberDescriptorType):
            try:
                return member.__get__(obj, type(obj))
            except AttributeError:
                return ABSENT
    return ABSENT


def cell_value(cell: types.CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        return ABSENT


def swap_entry(table: Any, key: Any, old: Any, new: Any) -> None:
    """Replace ``old`` by ``new`` in a plain dict or list. No call separates the test from the write, so that no other thread
    can write in between."""
    try:
        if table[key] is old:
            table[key] = new
    except LookupError:
        pass  # another thread has removed it
