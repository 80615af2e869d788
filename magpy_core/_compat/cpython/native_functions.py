"""Functions written in C: the object that a bound method of theirs belongs to. Key function: ``bound_object``."""

from __future__ import annotations

import types
from typing import Any

_RECORDS = ("PyCapsule", "pybind11_builtins")


def bound_object(method: Any) -> Any:
    """What a builtin method or a method wrapper is bound to; None for functions. An extension's functions are bound to their
    module, or to a record of their own (pybind11's: a capsule, or a class of its builtins)."""
    owner = method.__self__
    kind = type(owner)
    return None if kind is types.ModuleType or kind.__name__ in _RECORDS or kind.__module__ in _RECORDS else owner
