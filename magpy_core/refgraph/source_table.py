"""SourceTable: the sources of one recording. Key type: SourceTable."""

from __future__ import annotations

from typing import Any

from magpy_core.refgraph.source import Source
from magpy_core.refgraph.source_kinds import SOURCE_KINDS


class SourceTable:
    """Interning: one Source object per access path of a recording."""

    def __init__(self) -> None:
        self._table: dict[tuple[Any, ...], Source] = {}

    def make(self, kind: str, base: Source | None, key: Any, label: str = "") -> Source:
        k = (kind, id(base), type(key), id(key) if kind == "const" or not isinstance(key, (str, int)) else key)
        found = self._table.get(k)
        if found is None:
            found = self._table[k] = Source(kind, SOURCE_KINDS[kind], base, key, label)
        return found

    def arg(self, index: int, label: str) -> Source:
        return self.make("arg", None, index, label)

    def kwarg(self, name: str) -> Source:
        return self.make("kwarg", None, name, name)

    def const(self, obj: Any, label: str) -> Source:
        return self.make("const", None, obj, label)

    def attr(self, base: Source, name: str) -> Source:
        return self.make("attr", base, name)

    def item(self, base: Source, key: Any, kind: str = "item") -> Source:
        return self.make(kind, base, key)
