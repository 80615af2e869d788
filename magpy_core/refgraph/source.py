"""Source: how to reach a value from the region's roots at entry. Interned, so equality is identity.

A source is a small expression. ``evaluate`` interprets it, ``render`` gives the Python text used in generated
guards, ``describe`` the text shown to people. Key types: Source, SourceTable.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from magpy_core.refgraph import natives
from magpy_core.refgraph.iterators import peek

# kind -> (reader, python template); {b} is the base expression, {k} the key expression.
_READERS: dict[str, tuple[Callable[[Any, Any], Any], str]] = {
    "attr": (lambda b, k: namespace(b)[k], "namespace({b})[{k}]"),
    "dict": (lambda b, k: namespace(b), "namespace({b})"),
    "item": (lambda b, k: natives.item(b, k), "{b}[{k}]"),
    "dict_item": (lambda b, k: dict_entry(b, k), "dict_getitem({b}, {k})"),
    "list_item": (lambda b, k: list.__getitem__(b, k), "list_getitem({b}, {k})"),
    "key_at": (lambda b, k: _nth(dict.__iter__(b), k), "nth({b}, {k})"),
    # a slot: never by ``getattr``, which would run a ``__getattribute__`` of the user's
    "slot": (lambda b, k: slot_of(b, k), "slot_of({b}, {k})"),
    "filled": (lambda b, k: slot_filled(b, k), "slot_filled({b}, {k})"),
    "field": (lambda b, k: getattr(b, k), "getattr({b}, {k})"),
    "cell": (lambda b, k: b.cell_contents, "{b}.cell_contents"),
    "type": (lambda b, k: type(b), "type({b})"),
    "len": (lambda b, k: natives.length(b), "len({b})"),
    "deref": (lambda b, k: b(), "{b}()"),
    "size": (lambda b, k: b.size(k), "{b}.size({k})"),
    "offset": (lambda b, k: b.storage_offset(), "{b}.storage_offset()"),
    "cached": (lambda b, k: b(*k[0], **dict(k[1])), "{b}(*{k}[0], **dict({k}[1]))"),
    "setting": (lambda b, k: b(*k), "{b}(*{k})"),
    "cache_state": (lambda b, k: cache_state(b), "cache_state({b})"),
    "logs": (lambda b, k: b.isEnabledFor(k), "{b}.isEnabledFor({k})"),
    "context": (lambda b, k: b.get(k), "{b}.get({k})"),
    "peek": (lambda b, k: peek(b, k), "peek({b}, {k})"),
    "draw": (lambda b, k: _not_twice(k), "draw({b}, {k}, before)"),
}


_NOTHING = object()


def dict_entry(d: Any, key: Any) -> Any:
    """What a dict holds under a key; KeyError where there is nothing, whatever ``__missing__`` would make of that."""
    value = dict.get(d, key, _NOTHING)
    if value is _NOTHING:
        raise KeyError(key)
    return value


def namespace(obj: Any) -> Any:
    """``obj.__dict__``, whatever a ``__getattribute__`` of the user's says."""
    return (
        type.__getattribute__(obj, "__dict__") if issubclass(type(obj), type) else object.__getattribute__(obj, "__dict__")
    )


slot_of: Callable[[Any, str], Any] = object.__getattribute__


def slot_filled(obj: Any, name: str) -> bool:
    """Whether a slot holds anything."""
    try:
        slot_of(obj, name)
    except AttributeError:
        return False
    return True


def _nth(iterator: Iterator[Any], index: int) -> Any:
    for i, value in enumerate(iterator):
        if i == index:
            return value
    raise IndexError(index)


def _not_twice(key: Any) -> Any:
    raise LookupError(f"a number that {key[1]}() drew can't be read again")


def cache_state(fn: Any) -> str:
    """What tells whether a cached function's cache was cleared or filled since."""
    info = fn.cache_info()
    return f"{info.misses} misses, {info.currsize} entries"


class Source:
    """One access step from ``base``. ``kind`` is a key of ``_READERS``, or a root: ``arg``, ``kwarg``, ``const``."""

    __slots__ = ("base", "depth", "key", "kind", "label", "path")

    def __init__(self, kind: str, base: Source | None, key: Any, label: str = "") -> None:
        self.kind = kind
        self.base = base
        self.key = key  # a constant, or a Source (an item whose key is an object from outside)
        self.label = label
        self.depth: int = 0 if base is None else base.depth + 1
        self.path: str = self._path()

    def _path(self) -> str:
        """A text that is stable over recordings: what is learned about a value (it varies) is stored under it."""
        match self.kind:
            case "const":
                return f"<{self.label}@{id(self.key):x}>"
            case "arg":
                return f"args[{self.key}]"
            case "kwarg":
                return f"kwargs[{self.key!r}]"
        assert self.base is not None
        key = self.key.path if isinstance(self.key, Source) else repr(self.key)
        return f"{self.base.path}.{self.kind}({key})"

    def describe(self) -> str:
        """The access path as a user would write it."""
        if self.kind in ("const", "arg", "kwarg"):
            return self.label
        base = self.base.describe() if self.base is not None else ""
        key = self.key.describe() if isinstance(self.key, Source) else repr(self.key)
        match self.kind:
            case "filled":
                return f"hasattr({base}, {key})"
            case "attr" | "field" | "slot":
                return f"{base}.{self.key}"
            case "dict_item" | "item":
                b = self.base
                if b is not None and b.kind == "attr" and b.key in ("_parameters", "_buffers", "_modules"):
                    assert b.base is not None
                    return f"{b.base.describe()}.{self.key}"
                if b is not None and b.kind == "dict":
                    assert b.base is not None
                    return f"{b.base.describe()}.{self.key}"
                if b is not None and b.kind == "const" and b.label.startswith("globals of "):
                    return str(self.key)
                return f"{base}[{key}]"
            case "list_item":
                return f"{base}[{key}]"
            case "key_at":
                return f"list({base})[{key}]"
            case "dict":
                return f"{base}.__dict__"
            case "cell":
                return base
            case "type":
                return f"type({base})"
            case "len":
                return f"len({base})"
            case "deref":
                return f"{base}()"
            case "context":
                return f"{base}.get()"
            case "size":
                return f"{base}.shape[{self.key}]"
            case "peek":
                return f"next({base})"
            case "offset":
                return f"{base}.storage_offset()"
            case "cached":
                return f"{base}({', '.join([*map(repr, self.key[0]), *(f'{n}={v!r}' for n, v in self.key[1])])})"
            case "setting":
                return f"{base}({', '.join(map(repr, self.key))})"
            case "cache_state":
                return f"{base}.cache_info()"
            case "logs":
                return f"{base}.isEnabledFor({self.key})"
            case "draw":
                return f"{base}.{self.key[1]}({', '.join(map(repr, self.key[2]))})"
        return self.path

    def evaluate(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The value now. Raises what the access raises (LookupError, AttributeError, ValueError, ...)."""
        match self.kind:
            case "const":
                return self.key
            case "arg":
                return args[self.key]
            case "kwarg":
                return kwargs[self.key]
        assert self.base is not None
        key = self.key.evaluate(args, kwargs) if isinstance(self.key, Source) else self.key
        return _READERS[self.kind][0](self.base.evaluate(args, kwargs), key)

    def step(self, base: Any) -> Any:
        """The value, from that of ``base``; of a source whose key is not a source itself."""
        return _READERS[self.kind][0](base, self.key)

    def render(self, base: str, key: str) -> str:
        return _READERS[self.kind][1].format(b=base, k=key)

    def chain(self) -> list[Source]:
        """Root first."""
        out: list[Source] = []
        node: Source | None = self
        while node is not None:
            out.append(node)
            node = node.base
        return out[::-1]

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
