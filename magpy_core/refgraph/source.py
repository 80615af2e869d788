"""Source: how to reach a value from the region's roots at entry. Interned, so equality is identity.

A source is a small expression. ``evaluate`` interprets it, ``describe`` gives the text shown to people; what each of its
steps does is in ``source_kinds``.
Key types: Source, SourceTable.
"""

from __future__ import annotations

from typing import Any

from magpy_core.refgraph.source_kinds import SOURCE_KINDS, Root, SourceKind


class Source:
    """One access step from ``base``. ``kind`` is a name of SOURCE_KINDS: without a base, that of a root."""

    __slots__ = ("base", "key", "kind", "label", "path")

    def __init__(self, kind: str, base: Source | None, key: Any, label: str = "") -> None:
        self.kind = kind
        self.base = base
        self.key: Any = key  # a constant, or a Source (an item whose key is an object from outside)
        self.label = label
        # stable over recordings: what is learned about a value (it varies) is stored under it
        if base is None:
            self.path: str = self.root.path(self)
        else:
            self.path = f"{base.path}.{kind}({key.path if isinstance(key, Source) else repr(key)})"

    @property
    def step_kind(self) -> SourceKind:
        return SOURCE_KINDS[self.kind]

    @property
    def root(self) -> Root:
        """The kind of a source without a base."""
        kind = SOURCE_KINDS[self.kind]
        assert isinstance(kind, Root)
        return kind

    @property
    def parent(self) -> Source:
        """The base of a source that is no root."""
        assert self.base is not None
        return self.base

    def describe(self) -> str:
        """The access path as a user would write it."""
        return self.label if self.base is None else SOURCE_KINDS[self.kind].text(self, self.base.describe())

    def key_text(self) -> str:
        return self.key.describe() if isinstance(self.key, Source) else repr(self.key)

    def evaluate(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The value now. Raises what the access raises (LookupError, AttributeError, ValueError, ...)."""
        if self.base is None:
            return self.root.get(self.key, args, kwargs)
        key = self.key.evaluate(args, kwargs) if isinstance(self.key, Source) else self.key
        return self.step_kind.read(self.base.evaluate(args, kwargs), key)

    def chain(self) -> list[Source]:
        """Root first."""
        return [self] if self.base is None else [*self.base.chain(), self]

    def __repr__(self) -> str:
        return self.describe()


class SourceTable:
    """Interning: one Source object per access path of a recording."""

    def __init__(self) -> None:
        self._table: dict[tuple[Any, ...], Source] = {}

    def make(self, kind: str, base: Source | None, key: Any, label: str = "") -> Source:
        k = (kind, id(base), type(key), id(key) if kind == "const" or not isinstance(key, (str, int)) else key)
        found = self._table.get(k)
        if found is None:
            found = self._table[k] = Source(kind, base, key, label)
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
