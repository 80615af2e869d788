"""CPython's object layout: whether a class has state that only C code sees; what functions written in C are bound to.

A class statement adds to its base's size at most one pointer for each slot, for ``__dict__`` and for ``__weakref__``; any
further memory belongs to C code. Key functions: ``native_state``, ``is_heap_type``, ``bound_object``.
"""

from __future__ import annotations

import struct
import types
from typing import Any

from magpy_core._compat.cpython.weak_caches import class_by_object

_POINTER = struct.calcsize("P")


def is_heap_type(tp: type) -> bool:
    """Whether a class was created at run time: by a class statement, or by C as a heap type (``Py_TPFLAGS_HEAPTYPE``)."""
    return bool(tp.__flags__ & 1 << 9)


def _own_native_state(tp: type, base: type) -> bool:
    if not is_heap_type(tp) or tp.__itemsize__ != base.__itemsize__:
        return True
    members = sum(type(v) is types.MemberDescriptorType for v in tp.__dict__.values())
    shown = members + ("__dict__" in tp.__dict__) + ("__weakref__" in tp.__dict__)
    return tp.__basicsize__ - base.__basicsize__ > shown * _POINTER


@class_by_object
def native_state(tp: type) -> type | None:
    """The class among ``tp`` and its layout bases that has state in C (``int``, ``re.Match``, a pybind class); None for a
    class whose instances have only ``__dict__`` and slots."""
    while tp is not object:
        base = tp.__base__
        if base is None or _own_native_state(tp, base):
            return tp
        tp = base
    return None


_RECORDS = ("PyCapsule", "pybind11_builtins")


def bound_object(method: Any) -> Any:
    """The object that a builtin method or a method wrapper is bound to; None for functions. An extension's functions are
    bound to their module or to an internal record (pybind11: a capsule, or a class of ``pybind11_builtins``)."""
    owner = method.__self__
    kind = type(owner)
    return None if kind is types.ModuleType or kind.__name__ in _RECORDS or kind.__module__ in _RECORDS else owner
