"""Objects that are held weakly, and that any thread may look through. Key type: LiveObjects.

Looking through a `weakref.WeakSet` raises RuntimeError if another thread adds an object meanwhile, or drops one at the wrong
moment.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from typing import Generic, TypeVar

Held = TypeVar("Held")


class LiveObjects(Generic[Held]):
    """In the order in which they were added."""

    def __init__(self) -> None:
        self._references: dict[int, weakref.ref[Held]] = {}

    def add(self, held: Held) -> None:
        references, key = self._references, id(held)

        def gone(reference: weakref.ref[Held]) -> None:
            if references.get(key) is reference:
                references.pop(key, None)

        references[key] = weakref.ref(held, gone)

    def __iter__(self) -> Iterator[Held]:
        found = [*self._references.values()]  # in one step, in which no other thread runs
        return (held for reference in found if (held := reference()) is not None)
