"""ObjectRef: a weak reference to an object that a guard compares with by identity.

Key type: ObjectRef.
"""

from __future__ import annotations

import weakref
from typing import Any


class ObjectRef(weakref.ref):  # type: ignore[type-arg]
    """A weak reference to ``obj``, with its ``text`` for messages. Once it is dead, no value is that object."""

    __slots__ = ("text",)

    def __new__(cls, obj: Any, text: str) -> ObjectRef:
        return super().__new__(cls, obj)

    def __init__(self, obj: Any, text: str) -> None:
        super().__init__(obj)  # type: ignore[call-arg]
        self.text = text


def is_object(value: Any, expected: Any) -> bool:
    """Whether ``value`` is the expected object or the one that an ObjectRef refers to."""
    if type(expected) is not ObjectRef:
        return value is expected
    return value is not None and value is expected()  # a dead reference returns None
