"""Objects: facts about the attributes of objects whose state is in C."""

from __future__ import annotations

import functools
import types

NATIVE_FIELDS: dict[type, tuple[str, ...]] = {
    slice: ("start", "stop", "step"), range: ("start", "stop", "step"), types.SimpleNamespace: (),
    types.MethodType: ("__func__", "__self__"), functools.partial: ("func", "args", "keywords"),
}  # fmt: skip
"""The fields that make up the C state of objects of these classes, besides an instance ``__dict__``."""

CALLED_WITH_FIELDS = (types.MethodType, slice, range)
"""Those of them that a call with their fields as arguments builds again."""

FIXED_FIELDS = frozenset({
    "__name__", "__qualname__", "__module__", "__doc__", "__class__", "__objclass__", "__mro__", "__bases__",
})  # fmt: skip
"""C-level attributes of built-in objects that are determined by the object's identity."""

ARRAY_POINTERS = frozenset({"ctypes", "__array_interface__", "__array_struct__"})
"""Attributes of NumPy arrays that show the address of their memory."""
