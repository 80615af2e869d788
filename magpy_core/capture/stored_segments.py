"""What of a capture's segments an earlier process has compiled and stored. Key type: StoredSegments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from magpy_core.backends import stored
from magpy_core.backends.base import CompiledGraph
from magpy_core.capture.outcome import KnownSlower


class StoredSegments:
    """``is_known_slower``: as in `Settings`. ``kept``: the segments whose code was compiled before this process recorded
    them. ``first_key``: what the first segment's code was looked for as."""

    def __init__(self, is_known_slower: Callable[[str], bool]) -> None:
        self._is_known_slower = is_known_slower
        self._keys: dict[tuple[int, int], str | None] = {}
        self._looked_for: set[tuple[int, int, bool]] = set()
        self.kept: set[int] = set()
        self.first_key: str | None = None

    def find(
        self, segment: int, stage: int, inputs: tuple[Any, ...], key_of: Callable[[], str | None], *, again: bool = False
    ) -> CompiledGraph | None:
        """Its code as another process has stored it; it is looked for once, and once ``again``, after it was compiled for
        this process. ``key_of``: what it is stored as; None if it is not. Raises KnownSlower."""
        if (segment, stage, again) in self._looked_for:
            return None
        self._looked_for.add((segment, stage, again))
        key = self._keys[segment, stage] = key_of()
        if key is None:
            return None
        if segment == 0 and self.first_key is None:
            self.first_key = key
            if self._is_known_slower(key):
                raise KnownSlower
        found = stored.load(key, inputs)
        if found is not None and not again:
            self.kept.add(segment)
        return found

    def is_verified(self, segment: int, stage: int) -> bool:
        """Whether an earlier run has compared its code with eager mode."""
        key = self._keys.get((segment, stage))
        return segment in self.kept and key is not None and stored.is_verified(key)

    def verified(self, segment: int, stage: int, *, is_right: bool) -> None:
        """Its code was compared with eager mode: nobody is to load it if it is wrong."""
        key = self._keys.get((segment, stage))
        if key is not None:
            stored.note_verified(key) if is_right else stored.remove(key)
