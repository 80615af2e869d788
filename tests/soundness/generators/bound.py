"""Bound: methods written in C, bound to an object before the region runs, times ways to get at them.

``note = history.append`` or ``fresh = itertools.count().__next__`` leads to an object that the region names nowhere else:
what the method reads of it must be guarded, what it writes must be repeated. Key function: bound.
`python -m tests.soundness.generators.bound`.
"""

from __future__ import annotations

import collections
import functools
import io
import itertools
import random
import types
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn

import magpy_core
from tests.soundness.harness.families import Family, difference, main


@dataclass
class Bound:
    """A bound method, its object, what the method is given, how the object is changed between calls."""

    method: Any
    of: Any
    args: tuple[Any, ...]
    change: Callable[[], Any]

    def use(self, method: Any) -> Any:
        result = method(*self.args)
        return list(result) if hasattr(result, "__iter__") and not isinstance(result, torch.Tensor) else result


@dataclass
class _Record:
    k: int = 1
    more: list[int] = field(default_factory=list)


Make = Callable[[], Any]


def _of(make: Make, name: str, change: Callable[[Any], Any], *args: Any) -> Callable[[], Bound]:
    def made() -> Bound:
        obj = make()
        return Bound(getattr(obj, name), obj, args, lambda: change(obj))

    return made


def _list(name: str, *args: Any) -> Callable[[], Bound]:
    return _of(lambda: [2, 3, 4], name, lambda v: v.insert(0, 3), *args)


def _dict(name: str, *args: Any) -> Callable[[], Bound]:
    return _of(lambda: {"a": 1}, name, lambda d: d.update(a=6, n=2), *args)


def _object(name: str, *args: Any) -> Callable[[], Bound]:
    return _of(_Record, name, lambda o: setattr(o, "k", 70), *args)


def _namespace(name: str, *args: Any) -> Callable[[], Bound]:
    def made() -> Bound:
        o = _Record()
        return Bound(getattr(o.__dict__, name), o, args, lambda: setattr(o, "k", 70))

    return made


def _ordered() -> Any:
    return collections.OrderedDict(a=1, b=2)


def _hook(module: nn.Module) -> None:
    module.register_forward_hook(_doubled)


METHODS: dict[str, Callable[[], Bound]] = {
    "list.__len__": _list("__len__"),
    "list.__getitem__": _list("__getitem__", 0),
    "list.__setitem__": _list("__setitem__", 0, 5),
    "list.__iadd__": _list("__iadd__", [4]),
    "list.__contains__": _list("__contains__", 3),
    "list.__iter__": _list("__iter__"),
    "list.append": _list("append", 3),
    "list.pop": _list("pop"),
    "list.sort": _list("sort"),
    "list.copy": _list("copy"),
    "list.remove": _list("remove", 3),
    "list.index": _list("index", 3),
    "dict.get": _dict("get", "a"),
    "dict.items": _dict("items"),
    "dict.setdefault": _dict("setdefault", "y", 5),
    "dict.__setitem__": _dict("__setitem__", "z", 2),
    "dict.__contains__": _dict("__contains__", "n"),
    "dict.popitem": _of(lambda: dict.fromkeys(range(3)), "popitem", lambda d: d.update(a=1)),
    "set.add": _of(lambda: {1}, "add", lambda s: s.clear(), 5),
    "set.pop": _of(lambda: set(range(3)), "pop", lambda s: s.add(99)),
    "frozenset.__contains__": _of(lambda: frozenset({1}), "__contains__", lambda s: None, 1),
    "deque.append": _of(lambda: collections.deque([1], 4), "append", lambda q: q.clear(), 2),
    "deque.popleft": _of(lambda: collections.deque(range(3)), "popleft", lambda q: q.appendleft(7)),
    "defaultdict.__getitem__": _of(lambda: collections.defaultdict(list), "__getitem__", lambda d: d.update(n=[1]), "n"),
    "OrderedDict.move_to_end": _of(_ordered, "move_to_end", lambda d: d.update(c=3), "a"),
    "object.__setattr__": _object("__setattr__", "k", 5),
    "object.__getattribute__": _object("__getattribute__", "k"),
    "vars.get": _namespace("get", "k"),
    "vars.update": _namespace("update", {"k": 6}),
    "vars.__setitem__": _namespace("__setitem__", "k", 7),
    "iterator.__next__": _of(lambda: iter(list(range(200))), "__next__", next),
    "count.__next__": _of(itertools.count, "__next__", next),
    "StringIO.write": _of(io.StringIO, "write", lambda s: s.write("q"), "ab"),
    "bytearray.append": _of(lambda: bytearray(b"a"), "append", lambda b: b.clear(), 3),
    "Random.random": _of(lambda: random.Random(3), "random", lambda r: r.seed(3)),
    "Tensor.add_": _of(lambda: torch.zeros(2), "add_", lambda t: t.zero_(), 1),
    "Tensor.sum": _of(lambda: torch.ones(2), "sum", lambda t: t.add_(4)),
    "Module.__call__": _of(nn.ReLU, "__call__", _hook, torch.full((1,), -1.0)),
}


def _doubled(module: nn.Module, args: Any, out: torch.Tensor) -> torch.Tensor:
    return out * 2 + 1


def _tried(make: Callable[[], Any]) -> Any:
    try:
        return make()
    except Exception as error:  # most methods take no such arguments; raising is what the program does then
        return type(error).__name__


def _attribute(b: Bound) -> Callable[[], Any]:
    holder = types.SimpleNamespace(f=b.method)
    return lambda: b.use(holder.f)


def _default(b: Bound) -> Callable[[], Any]:
    def region(f: Any = b.method) -> Any:
        return b.use(f)

    return region


def _keyword_default(b: Bound) -> Callable[[], Any]:
    def region(*, f: Any = b.method) -> Any:
        return b.use(f)

    return region


def _class_attribute(b: Bound) -> Callable[[], Any]:
    holder: Any = type("Holder", (), {"f": b.method})
    return lambda: (b.use(holder.f), b.use(holder().f))


def _factory(b: Bound) -> Callable[[], Any]:
    made: Any = collections.defaultdict(b.method)
    return lambda: (type(_tried(lambda: made[len(made)])).__name__, len(made))


WAYS: dict[str, Callable[[Bound], Callable[[], Any]]] = {
    "closure": lambda b: lambda: b.use(b.method),
    "attribute": _attribute,
    "item of a list": lambda b: (lambda held: lambda: b.use(held[0]))([b.method]),
    "default": _default,
    "keyword default": _keyword_default,
    "class attribute": _class_attribute,
    "partial": lambda b: (lambda held: lambda: b.use(held))(functools.partial(b.method)),
    "default factory": _factory,
    "map": lambda b: lambda: type(_tried(lambda: list(map(b.method, [1, 2])))).__name__,
    "key of sorted": lambda b: lambda: type(_tried(lambda: sorted([1, 2], key=b.method))).__name__,
    "iter with a sentinel": lambda b: lambda: type(_tried(lambda: next(iter(b.method, object())))).__name__,
}


def _held(obj: Any) -> str:
    """What the object holds, looked at from outside the region."""
    if isinstance(obj, io.StringIO):
        return obj.getvalue()
    iterator = isinstance(obj, (itertools.count, type(iter([]))))
    return repr(obj.__reduce__()[1:]) if iterator else repr(obj.getstate() if isinstance(obj, random.Random) else obj)


def _life(name: str, way: str, compiled: bool, calls: int = 7) -> list[Any]:
    made = METHODS[name]()
    inner = WAYS[way](made)

    def region(x: torch.Tensor) -> Any:
        return x + 1, inner()

    target = magpy_core.compile(region, backend="eager") if compiled else region
    seen = []
    for call in range(calls):
        if call == 4:
            made.change()
        seen.append((repr(_tried(lambda: target(torch.ones(1)))), _held(made.of)))
    return seen


def bound(name: str, way: str) -> str | None:
    """How a region that uses the method differs from eager mode over some calls; None where it doesn't."""
    return difference(_life, name, way)


FAMILY = Family.product(bound, name=METHODS, way=WAYS)


if __name__ == "__main__":
    raise SystemExit(main(FAMILY))
