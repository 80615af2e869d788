"""Gained: special methods that a class gets, changes or loses between the calls, times whatever would run them.

What ``o + 1`` or ``sorted(things)`` does depends on methods that are not there yet: their absence is read, too. Each region
is called on two worlds, one of eager mode and one compiled. Key function: gained. `python -m
tests.soundness.generators.gained`.
"""

from __future__ import annotations

import abc
import bisect
import collections
import collections.abc
import contextlib
import copy
import functools
import heapq
import itertools
import json
import math
import operator
import os
import re
import statistics
import typing
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

import magpy_core
from tests.soundness.harness.families import Family, difference, main

LOG: list[str] = []

METHODS: dict[str, Callable[..., Any]] = {
    "__add__": lambda self, other: 10,
    "__radd__": lambda self, other: 11,
    "__iadd__": lambda self, other: self,
    "__mul__": lambda self, other: 12,
    "__rmul__": lambda self, other: 13,
    "__sub__": lambda self, other: 14,
    "__matmul__": lambda self, other: 15,
    "__truediv__": lambda self, other: 16,
    "__floordiv__": lambda self, other: 17,
    "__mod__": lambda self, other: 18,
    "__pow__": lambda self, other: 19,
    "__and__": lambda self, other: 20,
    "__or__": lambda self, other: 21,
    "__neg__": lambda self: 22,
    "__invert__": lambda self: 23,
    "__abs__": lambda self: 24,
    "__divmod__": lambda self, other: (25, 1),
    "__lshift__": lambda self, other: 26,
    "__eq__": lambda self, other: True,
    "__ne__": lambda self, other: True,
    "__lt__": lambda self, other: True,
    "__gt__": lambda self, other: True,
    "__le__": lambda self, other: True,
    "__hash__": lambda self: 27,
    "__bool__": lambda self: False,
    "__len__": lambda self: 0,
    "__contains__": lambda self, x: True,
    "__iter__": lambda self: iter([28, 29]),
    "__next__": lambda self: 30,
    "__reversed__": lambda self: iter([31]),
    "__getitem__": lambda self, key: [32, 33][key],
    "__setitem__": lambda self, key, value: LOG.append("setitem"),
    "__delitem__": lambda self, key: LOG.append("delitem"),
    "__call__": lambda self, *args: 34,
    "__int__": lambda self: 35,
    "__float__": lambda self: 36.5,
    "__index__": lambda self: 1,
    "__complex__": lambda self: 3j,
    "__round__": lambda self, n=0: 37,
    "__trunc__": lambda self: 38,
    "__floor__": lambda self: 39,
    "__ceil__": lambda self: 40,
    "__str__": lambda self: "s",
    "__repr__": lambda self: "r",
    "__format__": lambda self, spec: "f",
    "__bytes__": lambda self: b"b",
    "__fspath__": lambda self: "p",
    "__dir__": lambda self: ["d"],
    "__enter__": lambda self: 41,
    "__exit__": lambda self, *error: True,
    "__getattr__": lambda self, name: 42 if not name.startswith("__") else object.__getattribute__(self, name),
    "__getattribute__": lambda self, name: 43 if name == "k" else object.__getattribute__(self, name),
    "__setattr__": lambda self, name, value: LOG.append(name),
    "__delattr__": lambda self, name: LOG.append("del " + name),
    "__copy__": lambda self: 44,
    "__deepcopy__": lambda self, memo: 45,
    "__reduce_ex__": lambda self, n: (int, (46,)),
    "__getstate__": lambda self: {"k": 47},
    "__length_hint__": lambda self: 3,
    "__class_getitem__": classmethod(lambda cls, k: 48),
    "__instancecheck__": lambda self, obj: True,
    "__missing__": lambda self, key: 49,
    "__torch_function__": classmethod(lambda cls, fn, types, args=(), kwargs=None: 50),
    "__array__": lambda self, *a, **k: np.ones(2),
    "__sizeof__": lambda self: 51,
    "__await__": lambda self: iter([]),
    "k": property(lambda self: 52),
    "unknown": 53,
    "__set_name__": lambda self, owner, name: None,
    "__match_args__": ("k",),
    "__slots__": ("q",),
    "__doc__": "other",
    "__get__": lambda self, obj, cls=None: 54,
    "__set__": lambda self, obj, value: LOG.append("set"),
    "__class__": property(lambda self: int),
    "__name__": "n",
    "__module__": "m",
    "__annotations__": {"k": int},
    "__len_hint__": None,
    "__del__": lambda self: None,
}


class Base:
    pass


class World:
    """Two objects of a class that changes, in the places where programs keep objects."""

    def __init__(self, base: type) -> None:
        self.cls: Any = type("Thing", (base,), {})
        self.o, self.p = self.cls(), self.cls()
        self.o.k, self.p.k = 1, 2
        self.list = [self.o, self.p]
        self.d = {"a": self.o}
        self.holder: Any = type("Holder", (), {"thing": self.o})()
        self.holder.k = 5


def _added(w: World) -> Any:
    v = w.o
    v += 1
    return v


def _entered(w: World) -> Any:
    with w.o as v:
        raise KeyError(v)
    return 7


def _deleted(w: World) -> Any:
    del w.p.k
    return w.p.__dict__.get("k")


def _set(w: World) -> Any:
    w.p.k = 9
    return w.p.__dict__.get("k")


def _matched(w: World) -> Any:
    match w.o:
        case [a, _]:
            return a
        case {"x": 1}:
            return 1
        case Base(k=1):
            return 2
        case 0:
            return 3
    return 4


def _held(w: World) -> Any:
    w.holder.thing = 3
    return vars(w.holder).get("thing")


def _starred(w: World) -> Any:
    first, *others = w.o
    return first, others


class Registered(abc.ABC):  # noqa: B024
    @classmethod
    def __subclasshook__(cls, other: type) -> Any:
        return any("__len__" in k.__dict__ for k in other.__mro__) or NotImplemented


@typing.runtime_checkable
class Sized(typing.Protocol):
    def __len__(self) -> int: ...


USES: dict[str, Callable[[World], Any]] = {
    "+": lambda w: w.o + 1,
    "r+": lambda w: 1 + w.o,
    "+=": _added,
    "*": lambda w: w.o * 2,
    "r*": lambda w: 2 * w.o,
    "-": lambda w: w.o - 1,
    "@": lambda w: w.o @ 1,
    "/": lambda w: w.o / 1,
    "//": lambda w: w.o // 1,
    "%": lambda w: w.o % 1,
    "**": lambda w: w.o**2,
    "&": lambda w: w.o & 1,
    "|": lambda w: w.o | 1,
    "neg": lambda w: -w.o,
    "inv": lambda w: ~w.o,
    "abs": lambda w: abs(w.o),
    "divmod": lambda w: divmod(w.o, 1),
    "<<": lambda w: w.o << 1,
    "==": lambda w: (w.o == w.p, w.o == 3),
    "!=": lambda w: (w.o != w.p, w.o != w.o),
    "<": lambda w: w.o < w.p,
    ">": lambda w: w.o > w.p,
    "<=": lambda w: w.o <= w.p,
    "hash": lambda w: hash(w.o) == 27,
    "truth": lambda w: 1 if w.o else 2,
    "not": lambda w: not w.o,
    "and": lambda w: (w.o and 5) == 5,
    "bool": lambda w: bool(w.o),
    "len": lambda w: len(w.o),
    "in": lambda w: 1 in w.o,
    "in list": lambda w: w.p in [w.o],
    "index": lambda w: w.list.index(w.p),
    "count": lambda w: w.list.count(w.p),
    "list equal": lambda w: [w.o] == [w.p],
    "tuple less": lambda w: (w.o, 1) < (w.p, 1),
    "iter": lambda w: list(w.o),
    "next": lambda w: next(w.o),
    "reversed": lambda w: list(reversed(w.o)),
    "star": lambda w: [*w.o],
    "starred": _starred,
    "item": lambda w: w.o[0],
    "set item": lambda w: operator.setitem(w.o, 0, 1),
    "delete item": lambda w: operator.delitem(w.o, 0),
    "call": lambda w: w.o(1),
    "callable": lambda w: callable(w.o),
    "int": lambda w: int(w.o),
    "float": lambda w: float(w.o),
    "complex": lambda w: complex(w.o),
    "index of": lambda w: [7, 8][w.o],
    "range": lambda w: list(range(w.o)),
    "round": lambda w: round(w.o),
    "trunc": lambda w: math.trunc(w.o),
    "floor": lambda w: math.floor(w.o),
    "ceil": lambda w: math.ceil(w.o),
    "sqrt": lambda w: math.sqrt(w.o),
    "str": lambda w: str(w.o)[:2],
    "repr": lambda w: repr(w.o)[:2],
    "f": lambda w: f"{w.o}"[:2],
    "%s": lambda w: ("%s" % w.o)[:2],  # noqa: UP031
    "repr of a list": lambda w: repr([w.o])[:3],
    "format": lambda w: "{0}".format(w.o)[:2],  # noqa: UP030, UP032
    "bytes": lambda w: bytes(w.o),
    "fspath": lambda w: os.fspath(w.o),
    "join": lambda w: os.path.join("a", w.o),
    "dir": lambda w: dir(w.o) == ["d"],
    "with": _entered,
    "attribute": lambda w: w.o.k,
    "unknown": lambda w: w.o.unknown,
    "getattr": lambda w: getattr(w.o, "unknown", 3),
    "hasattr": lambda w: hasattr(w.o, "unknown"),
    "set": _set,
    "delete": _deleted,
    "copy": lambda w: type(copy.copy(w.o)).__name__,
    "copy k": lambda w: copy.copy(w.o).k,
    "deep copy": lambda w: copy.deepcopy(w.o).k,
    "deep copied list": lambda w: copy.deepcopy(w.list)[1].k,
    "hint": lambda w: operator.length_hint(w.o, 7),
    "subscript": lambda w: w.cls[0],
    "isinstance": lambda w: isinstance(w.o, w.cls),
    "isinstance of int": lambda w: isinstance(w.o, int),
    "type": lambda w: type(w.o) is w.cls,
    "class": lambda w: w.o.__class__ is w.cls,
    "iterable": lambda w: isinstance(w.o, collections.abc.Iterable),
    "sized": lambda w: isinstance(w.o, Sized),
    "hashable": lambda w: isinstance(w.o, collections.abc.Hashable),
    "callable abc": lambda w: isinstance(w.o, collections.abc.Callable),
    "hooked": lambda w: isinstance(w.o, Registered),
    "subclass": lambda w: issubclass(w.cls, Registered),
    "max": lambda w: max(w.list).k,
    "min": lambda w: min(w.o, w.p).k,
    "sorted": lambda w: [v.k for v in sorted(w.list)],
    "sort by": lambda w: [v.k for v in sorted(w.list, key=lambda v: v)],
    "sum": lambda w: sum(w.list),
    "sum from": lambda w: sum(w.list, 5),
    "any": lambda w: any(w.list),
    "all": lambda w: all(w.list),
    "filter": lambda w: len(list(filter(None, w.list))),
    "map": lambda w: list(map(len, w.list)),
    "set of": lambda w: len(set(w.list)),
    "keys": lambda w: len({w.o: 1, w.p: 2}),
    "zip": lambda w: list(zip(w.o, "ab", strict=False)),
    "enumerate": lambda w: list(enumerate(w.o)),
    "tuple": lambda w: tuple(w.o),
    "dict": lambda w: dict(zip(w.o, "ab", strict=False)),
    "spread": lambda w: (lambda *a: len(a))(*w.o),
    "heap": lambda w: heapq.nsmallest(1, w.list)[0].k,
    "bisect": lambda w: bisect.bisect_left(w.list, w.p),
    "reduce": lambda w: functools.reduce(operator.add, w.list),
    "chain": lambda w: list(itertools.chain(w.o)),
    "accumulate": lambda w: list(itertools.accumulate(w.list)),
    "json": lambda w: json.dumps([w.o.k]),
    "mean": lambda w: statistics.mean([w.o, w.p]),
    "concat": lambda w: operator.concat(w.o, w.p),
    "contains": lambda w: operator.contains(w.o, 1),
    "attrgetter": lambda w: operator.attrgetter("k")(w.o),
    "itemgetter": lambda w: operator.itemgetter(0)(w.o),
    "vars": lambda w: sorted(vars(w.o)),
    "tensor": lambda w: torch.tensor(w.o),
    "tensor float": lambda w: torch.tensor(float(w.o)),
    "tensor +": lambda w: torch.ones(1) + w.o,
    "r tensor": lambda w: w.o + torch.ones(1),
    "tensor index": lambda w: torch.arange(3)[w.o],
    "tensor shape": lambda w: torch.ones(w.o).shape,
    "add tensors": lambda w: torch.add(torch.ones(1), w.o),
    "array": lambda w: np.asarray(w.o).dtype == object,
    "held": _held,
    "matched": _matched,
    "doc": lambda w: w.cls.__doc__,
    "name": lambda w: w.cls.__name__,
    "module": lambda w: w.cls.__module__,
    "annotations": lambda w: typing.get_type_hints(w.cls),
    "held read": lambda w: w.holder.thing is w.o,
    "iter of 2": lambda w: next(iter(w.o)),
    "isinstance of both": lambda w: isinstance(w.o, (int, w.cls)),
    "counter": lambda w: len(collections.Counter(w.list)),
    "suppress": lambda w: contextlib.nullcontext(w.o).__enter__() is w.o,
    "mro": lambda w: len(w.cls.__mro__),
    "str.join": lambda w: ",".join(w.o),
}
CHANGES = ("gained", "lost", "by the base")
LIMITS = {("__annotations__", "annotations")}  # asked for its annotations, a class without any gets an empty dict of them


def _life(name: str, use: str, change: str, compiled: bool, calls: int = 6) -> list[Any]:
    base: Any = type("Base2", (Base,), {})
    world = World(base)
    method = METHODS[name]
    where = base if change == "by the base" else world.cls

    def flip(there: bool) -> None:
        if there:
            type.__setattr__(where, name, method)
        elif name in where.__dict__:
            type.__delattr__(where, name)

    def region(x: torch.Tensor) -> Any:
        try:
            return x + 1, USES[use](world)
        except Exception as error:
            return x + 1, type(error).__name__

    target = magpy_core.compile(region, backend="eager") if compiled else region
    seen = []
    with contextlib.suppress(TypeError, AttributeError):
        flip(change == "lost")
    for call in range(calls):
        if call in (3, 5):
            with contextlib.suppress(TypeError, AttributeError):
                flip((call == 3) != (change == "lost"))
        LOG.clear()
        try:
            y, value = target(torch.ones(1))
            got = y.item(), re.sub(" at 0x[0-9a-f]*", "", repr(value))
        except Exception as error:
            got = 0, type(error).__name__
        plain = object.__getattribute__
        seen.append((*got, list(LOG), sorted(plain(world.p, "__dict__")), plain(world.holder, "__dict__").get("thing")))
    return seen


def gained(name: str, use: str, change: str) -> str | None:
    """How a region differs from eager mode when a method comes or goes; None where it doesn't."""
    return difference(_life, name, use, change)


CASES = [(name, use, change) for use in USES for name in METHODS for change in CHANGES if (name, use) not in LIMITS]
FAMILY = Family(gained, ("method", "use", "change"), CASES)


if __name__ == "__main__":
    raise SystemExit(main(FAMILY))
