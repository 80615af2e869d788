"""ObjectRef: an object of the program that a guard compares with by identity, and must not keep alive.

Key type: ObjectRef.
"""

from __future__ import annotations

import weakref
from typing import Any


class ObjectRef(weakref.ref):  # type: ignore[type-arg]
    """Stands for ``obj``, whose ``text`` in messages is known. Once it is dead, nothing is that object any more."""

    __slots__ = ("text",)

    def __new__(cls, obj: Any, text: str) -> ObjectRef:
        return super().__new__(cls, obj)

    def __init__(self, obj: Any, text: str) -> None:
        super().__init__(obj)  # type: ignore[call-arg]
        self.text = text


def is_object(value: Any, expected: Any) -> bool:
    """Whether ``value`` is the expected object, which an ObjectRef may stand for."""
    if type(expected) is not ObjectRef:
        return value is expected
    return value is not None and value is expected()  # None is what a dead reference gives
