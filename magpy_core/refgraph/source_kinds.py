"""The kinds of source: the roots, and each step from one value to another.

To add one, add it to SOURCE_KINDS; write a subclass for special behavior. Key name: SOURCE_KINDS.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from magpy_core._compat.cpython.slot_words import slot
from magpy_core.refgraph import natives
from magpy_core.refgraph.arrays import array_text, is_array
from magpy_core.refgraph.counters import position
from magpy_core.refgraph.draws import Drawn
from magpy_core.refgraph.folds import fold, numbers_in
from magpy_core.refgraph.iterators import remaining, upcoming
from magpy_core.refgraph.lookup import MODULE_TABLES, overrides
from magpy_core.refgraph.source import Level, Root, Source, SourceKind, Writer
from magpy_core.refgraph.streams import is_closed

_TUPLES = (tuple, torch.Size)
_PLAIN_TENSORS = (torch.Tensor, torch.nn.Parameter)
_NOTHING = object()


def dict_entry(d: Any, key: Any) -> Any:
    """A dict's value for a key; raises KeyError if there is none, without calling ``__missing__``."""
    value = dict.get(d, key, _NOTHING)
    if value is _NOTHING:
        raise KeyError(key)
    return value


def namespace(obj: Any) -> Any:
    """``obj.__dict__``, without calling a user-defined ``__getattribute__``."""
    return (
        type.__getattribute__(obj, "__dict__") if issubclass(type(obj), type) else object.__getattribute__(obj, "__dict__")
    )


slot_of: Callable[[Any, str], Any] = object.__getattribute__
"""Not ``getattr``, which would run a user-defined ``__getattribute__``."""


def slot_filled(obj: Any, name: str) -> bool:
    """Whether a slot holds a value."""
    try:
        slot_of(obj, name)
    except AttributeError:
        return False
    return True


def _cannot_redraw(key: Any) -> Any:
    raise LookupError(f"a number that {key[1]}() drew can't be read again")


def _cannot_compute() -> Any:
    raise LookupError("only generated code computes it")


def number_in(tensor: Any) -> Any:
    """The integer that a tensor on the CPU holds; None for any other tensor."""
    if type(tensor) not in _PLAIN_TENSORS or tensor.device.type != "cpu" or tensor.numel() != 1:
        return None
    number = None if tensor.layout is not torch.strided or tensor.is_quantized else tensor.item()
    return number if type(number) is int else None


def cache_state(fn: Any) -> str:
    """The state of a cached function's cache, which changes when it is cleared or filled."""
    info = fn.cache_info()
    return f"{info.misses} misses, {info.currsize} entries"


def _base(source: Source, base: str) -> str:
    return base


def _member(source: Source, base: str) -> str:
    return f"{base}.{source.key}"


def _item(source: Source, base: str) -> str:
    return f"{base}[{source.key_text()}]"


def _dict_item(source: Source, base: str) -> str:
    """Shown as an attribute or a global if the dict is a namespace."""
    at = source.parent
    if at.kind == "dict" or (at.kind == "attr" and at.key in MODULE_TABLES):
        return _member(source, at.parent.describe())
    return str(source.key) if at.kind == "const" and at.label.startswith("globals of ") else _item(source, base)


def _called(base: str, args: tuple[Any, ...], kwargs: tuple[tuple[str, Any], ...] = ()) -> str:
    return f"{base}({', '.join([*map(repr, args), *(f'{n}={v!r}' for n, v in kwargs)])})"


class Const(Root):
    """An object that the guard itself keeps."""

    def path(self, source: Source) -> str:
        return f"<{source.label}@{id(source.key):x}>"

    def code(self, writer: Writer, source: Source) -> str:
        return writer.const(source.key)

    def held(self, level: Level, source: Source) -> bool:
        return True

    def table(self, level: Level, source: Source) -> bool:
        return type(source.key) is dict and level.fixed_names(source)


class Attribute(SourceKind):
    """An entry of an object's own ``__dict__``."""

    watchable = followed = True

    def expression(self, writer: Writer, source: Source) -> str:
        return f"{writer.dict_of(source.parent)}[{writer.const(source.key)}]"

    def held(self, level: Level, source: Source) -> bool:
        return level.namespace(source.parent)

    def table(self, level: Level, source: Source) -> bool:
        return level.held(source) and level.add_table(source.path, level.value(source))


class Namespace(SourceKind):
    """An object's own ``__dict__``."""

    followed = True

    def code(self, writer: Writer, source: Source) -> str:
        return writer.dict_of(source.parent)


class Entries(SourceKind):
    """An element of a container, or a dict's entry."""

    watchable = followed = True

    def _is_plain(self, writer: Writer, source: Source) -> bool:
        return source.parent.kind != "const" and writer.type_of(source.parent) in (dict, list)


class ListItem(Entries):
    def form(self, writer: Writer, source: Source) -> str:
        return "{b}[{k}]" if self._is_plain(writer, source) else self.template


class DictItem(Entries):
    def form(self, writer: Writer, source: Source) -> str:
        if self._is_plain(writer, source):
            return "{b}[{k}]"
        # a guard must not call `__missing__`, which may create the entry
        tp = writer.type_of(source.parent)
        may_create = source.parent.kind != "dict" and (tp is None or hasattr(tp, "__missing__"))
        return "dict_entry({b}, {k})" if may_create else self.template

    def held(self, level: Level, source: Source) -> bool:
        return level.contents(source.parent)

    def table(self, level: Level, source: Source) -> bool:
        return (
            source.parent.kind in ("dict", "const")
            and level.held(source)
            and level.add_table(source.path, level.value(source))
        )


class Item(DictItem):
    """``base[key]``, as the program writes it."""

    def form(self, writer: Writer, source: Source) -> str:
        return "native_item({b}, {k})" if overrides(writer.type_of(source.parent), "__getitem__") else self.template

    def may_follow(self, base: Any, key: Any) -> bool:
        return type(base) in (dict, list, *_TUPLES)

    def held(self, level: Level, source: Source) -> bool:
        return _of_held_tuple(level, source) or level.contents(source.parent)


class Length(SourceKind):
    def form(self, writer: Writer, source: Source) -> str:
        return "native_len({b})" if overrides(writer.type_of(source.parent), "__len__") else self.template

    def may_follow(self, base: Any, key: Any) -> bool:
        return type(base) in (dict, list, *_TUPLES)

    def held(self, level: Level, source: Source) -> bool:
        return _of_held_tuple(level, source)


class Cell(SourceKind):
    """The content of a closure's cell."""

    watchable = followed = True

    def held(self, level: Level, source: Source) -> bool:
        return level.slot(source)


class Field(SourceKind):
    """An attribute of an object written in C."""

    def may_follow(self, base: Any, key: Any) -> bool:
        return slot(base, key) is not None

    def held(self, level: Level, source: Source) -> bool:
        return level.slot(source)

    def table(self, level: Level, source: Source) -> bool:
        return source.key == "__kwdefaults__" and level.held(source)


class Cached(SourceKind):
    """The cached value for arguments: its key is those, and the number of the call among those of the region."""

    counted = True


class Draw(SourceKind):
    """A number drawn from a random stream: its key is the number of the draw, the method and the method's arguments."""

    def code(self, writer: Writer, source: Source) -> str:
        number, method, args, kwargs = source.key
        key = writer.key(source)
        if any(type(value) is Drawn for value in (*args, *kwargs.values())):
            given = [writer.scalar(v.sym) if type(v) is Drawn else writer.const(v) for v in (*args, *kwargs.values())]
            names = "".join(f"{k!r}: {v}, " for k, v in zip(kwargs, given[len(args) :], strict=True))
            key = f"({number}, {method!r}, ({''.join(f'{v}, ' for v in given[: len(args)])}), {{{names}}})"
        name = writer.new_name("draw")  # not a "v..." name, which `inline_single_uses` could move into the next line
        writer.lines.append(f"{name} = {self.template.format(b=writer.var(source.parent), k=key)}")
        return name


class ShapeOfArray(SourceKind):
    """Never held: an array is resized in place."""

    def may_follow(self, base: Any, key: Any) -> bool:
        return is_array(base)


@dataclass(frozen=True)
class Computation:
    """What makes a tensor: the symbol of the array, and keyword arguments."""

    sym: Any
    options: tuple[tuple[str, Any], ...] = ()

    def __repr__(self) -> str:  # part of a path: stable over recordings
        return f"{self.sym.path}, {dict(self.options)}"

    @property
    def is_of_draws(self) -> bool:
        """Whether random numbers decide it, which can't be drawn again to explain a miss."""
        return any(step.kind == "draw" for leaf in self.sym.leaves() for step in leaf.payload.chain())


class Computed(SourceKind):
    """A tensor that a function of torch makes of an array that is known before the graph runs: its key is a computation."""

    def evaluate(self, source: Source, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        array = source.key.sym.value(lambda leaf: leaf.evaluate(args, kwargs))
        return source.parent.evaluate(args, kwargs)(array, **dict(source.key.options))

    def code(self, writer: Writer, source: Source) -> str:
        given = "".join(f", {name}={writer.const(value)}" for name, value in source.key.options)
        return writer.assign(f"{writer.var(source.parent)}({writer.scalar(source.key.sym)}{given})")


class Clock(SourceKind):
    """What a clock shows: its key is the number of the read."""

    def code(self, writer: Writer, source: Source) -> str:
        name = writer.new_name("clock")  # like that of a draw
        writer.lines.append(f"{name} = {self.template.format(b=writer.var(source.parent))}")
        return name


def _of_held_tuple(level: Level, source: Source) -> bool:
    base = source.parent
    return base.kind != "dict" and level.held(base) and type(level.value(base)) in _TUPLES


SOURCE_KINDS: dict[str, SourceKind] = {
    "const": Const(lambda k, args, kwargs: k, ""),
    "arg": Root(lambda k, args, kwargs: args[k], "args[{k}]"),
    "kwarg": Root(lambda k, args, kwargs: kwargs[k], "kwargs[{k}]"),
    "attr": Attribute(lambda b, k: namespace(b)[k], "namespace({b})[{k}]", _member),
    "dict": Namespace(lambda b, k: namespace(b), "namespace({b})", lambda s, b: f"{b}.__dict__"),
    "item": Item(natives.item, "{b}[{k}]", _dict_item),
    "dict_item": DictItem(dict_entry, "dict_getitem({b}, {k})", _dict_item),
    "list_item": ListItem(list.__getitem__, "list_getitem({b}, {k})", _item),
    "key_at": SourceKind(natives.nth, "nth({b}, {k})", lambda s, b: f"list({b})[{s.key_text()}]"),
    "slot": SourceKind(slot_of, "slot_of({b}, {k})", _member),
    "filled": SourceKind(slot_filled, "slot_filled({b}, {k})", lambda s, b: f"hasattr({b}, {s.key_text()})"),
    "field": Field(getattr, "getattr({b}, {k})", _member),
    "cell": Cell(lambda b, k: b.cell_contents, "{b}.cell_contents", _base),
    "type": SourceKind(lambda b, k: type(b), "type({b})", lambda s, b: f"type({b})"),
    "len": Length(lambda b, k: natives.length(b), "len({b})", lambda s, b: f"len({b})"),
    "deref": SourceKind(lambda b, k: b(), "{b}()", lambda s, b: f"{b}()"),
    "size": SourceKind(lambda b, k: b.size(k), "{b}.size({k})", lambda s, b: f"{b}.shape[{s.key}]"),
    "number": SourceKind(lambda b, k: number_in(b), "number_in({b})", lambda s, b: f"{b}.item()"),
    "offset": SourceKind(lambda b, k: b.storage_offset(), "{b}.storage_offset()", lambda s, b: f"{b}.storage_offset()"),
    "cached": Cached(
        lambda b, k: b(*k[0], **dict(k[1])), "{b}(*{k}[0], **dict({k}[1]))", lambda s, b: _called(b, *s.key[:2])
    ),
    "setting": SourceKind(lambda b, k: b(*k), "{b}(*{k})", lambda s, b: _called(b, s.key)),
    "cache_state": SourceKind(lambda b, k: cache_state(b), "cache_state({b})", lambda s, b: f"{b}.cache_info()"),
    "logs": SourceKind(lambda b, k: b.isEnabledFor(k), "{b}.isEnabledFor({k})", lambda s, b: f"{b}.isEnabledFor({s.key})"),
    "context": SourceKind(lambda b, k: b.get(k), "{b}.get({k})", lambda s, b: f"{b}.get()"),
    "upcoming": SourceKind(upcoming, "upcoming({b}, {k})", lambda s, b: f"next({b})"),
    "remaining": SourceKind(lambda b, k: remaining(b), "remaining({b})", lambda s, b: f"remaining({b})"),
    "position": SourceKind(lambda b, k: position(b), "position({b})", lambda s, b: f"next({b})"),
    "shape": ShapeOfArray(lambda b, k: b.shape, "{b}.shape", lambda s, b: f"{b}.shape"),
    "array": SourceKind(lambda b, k: array_text(b), "array_text({b})", _base),
    "closed": SourceKind(lambda b, k: is_closed(b), "is_closed({b})", lambda s, b: f"{b}.closed"),
    "numbers": SourceKind(lambda b, k: numbers_in(b), "numbers_in({b})", _base),
    "fold": SourceKind(fold, "fold({b}, {k})", lambda s, b: f"{s.key[0]}({b})"),
    "clock": Clock(lambda b, k: b(), "{b}()", lambda s, b: f"{b}()"),
    "computed": Computed(lambda b, k: _cannot_compute(), "", lambda s, b: f"{b}(...)"),
    "draw": Draw(
        lambda b, k: _cannot_redraw(k), "draw({b}, {k}, before)", lambda s, b: _called(f"{b}.{s.key[1]}", s.key[2])
    ),
}
