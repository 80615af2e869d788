"""Source: how to reach a value from the region's roots at entry. Interned, so equality is identity.

A source is a small expression. ``evaluate`` interprets it, ``describe`` returns its text for messages. A step's kind defines
how it is read, its Python text in generated guards, its text for messages, and whether dict version tags cover it; the
kinds themselves are in ``source_kinds``. Key types: Source, SourceKind, Root.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Protocol


class Source:
    """One access step from ``base``, or a root if it is None. ``kind`` is the name of ``step_kind``."""

    __slots__ = ("_text", "base", "counted", "key", "kind", "label", "path", "step_kind")

    def __init__(self, kind: str, step_kind: SourceKind, base: Source | None, key: Any, label: str = "") -> None:
        self.kind, self.step_kind = kind, step_kind
        self.base = base
        self.key: Any = key  # a constant, or a Source (an item whose key is an object from outside)
        self.label = label
        self.counted: bool = step_kind.counted or (base is not None and base.counted)
        self._text: str | None = None
        # stable over recordings: facts about a value (that it is dynamic) are stored under its path
        if base is None:
            self.path: str = self.root.path(self)
        else:
            self.path = f"{base.path}.{kind}({key.path if isinstance(key, Source) else repr(key)})"

    @property
    def root(self) -> Root:
        """The kind of a source without a base."""
        assert isinstance(self.step_kind, Root)
        return self.step_kind

    @property
    def parent(self) -> Source:
        """The base of a source that is not a root."""
        assert self.base is not None
        return self.base

    def describe(self) -> str:
        """The access path as a user would write it."""
        if self._text is None:
            self._text = self.label if self.base is None else self.step_kind.text(self, self.base.describe())
        return self._text

    def key_text(self) -> str:
        return self.key.describe() if isinstance(self.key, Source) else repr(self.key)

    def evaluate(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The current value. Raises what the access raises (LookupError, AttributeError, ValueError, ...)."""
        if self.base is None:
            return self.root.get(self.key, args, kwargs)
        return self.step_kind.evaluate(self, args, kwargs)

    def chain(self) -> list[Source]:
        """Root first."""
        return [self] if self.base is None else [*self.base.chain(), self]

    def __repr__(self) -> str:
        return self.describe()


class Writer(Protocol):
    """The guard generator, as a source sees it: it writes statements and names values."""

    lines: list[str]

    def var(self, source: Source) -> str: ...
    def dict_of(self, source: Source) -> str: ...
    def key(self, source: Source) -> str: ...
    def const(self, value: Any) -> str: ...
    def assign(self, expression: str) -> str: ...
    def new_name(self, prefix: str) -> str: ...
    def scalar(self, sym: Any, /) -> str: ...
    def type_of(self, source: Source) -> type | None: ...


class Level(Protocol):
    """The first level of a guard, as a source sees it: what is unchanged while the dict version tags are."""

    def value(self, source: Source) -> Any: ...
    def held(self, source: Source) -> bool: ...
    def slot(self, source: Source) -> bool: ...
    def contents(self, source: Source) -> bool: ...
    def namespace(self, source: Source) -> bool: ...
    def fixed_names(self, source: Source) -> bool: ...
    def add_table(self, path: str, table: Any) -> bool: ...


class SourceKind:
    """A step: ``read(base, key)`` is its value. ``template`` is the Python text of the access, with {b} for the base's
    expression and {k} for the key's; ``text(source, base_text)`` is the text for messages."""

    counted: ClassVar[bool] = False  # a cache counts the access, and which entry was used last
    watchable: ClassVar[bool] = False  # an object there may be a root of a first level
    followed: ClassVar[bool] = False  # the step runs no user code, and tags may cover it

    def __init__(self, read: Callable[[Any, Any], Any], template: str, text: Callable[[Source, str], str]) -> None:
        self.read, self.template, self.text = read, template, text

    def evaluate(self, source: Source, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The value at ``source`` in a call with these arguments."""
        key = source.key.evaluate(args, kwargs) if isinstance(source.key, Source) else source.key
        return self.read(source.parent.evaluate(args, kwargs), key)

    def code(self, writer: Writer, source: Source) -> str:
        """Write the access; returns the name of the variable (or constant) with the value."""
        return writer.assign(self.expression(writer, source))

    def expression(self, writer: Writer, source: Source) -> str:
        """The text of the access, with the variable of the base."""
        key = writer.key(source)
        return self.form(writer, source).format(b=writer.var(source.parent), k=key)

    def form(self, writer: Writer, source: Source) -> str:
        """The template; it may depend on the known type of the base."""
        return self.template

    def may_follow(self, base: Any, key: Any) -> bool:
        """Whether the step runs no user code for this base and key, and tags may cover it."""
        return self.followed

    def held(self, level: Level, source: Source) -> bool:
        """Whether the value is the same object as long as the tags are unchanged."""
        return False

    def table(self, level: Level, source: Source) -> bool:
        """Whether the value is a dict in a fixed namespace, with fixed contents."""
        return False


class Root(SourceKind):
    """The start of a path: ``get(key, args, kwargs)`` is its value."""

    watchable = True

    def __init__(self, get: Callable[[Any, Any, Any], Any], template: str) -> None:
        super().__init__(_root_has_no_base, template, lambda source, base: base)
        self.get = get

    def path(self, source: Source) -> str:
        return self.template.format(k=repr(source.key))

    def code(self, writer: Writer, source: Source) -> str:
        return writer.assign(self.path(source))


def _root_has_no_base(base: Any, key: Any) -> Any:
    raise TypeError("a root has no base")
