"""Ways: every way to write some state times every way to read it again, in one region.

A module's global is also an entry of ``globals()`` and an attribute of the module; an attribute is also an entry of
``__dict__``. A write by one way must be seen by every other, while it is recorded and at each replay, and so must what
changes between the calls. `python -m tests.soundness.generators.ways`. Key function: through.
"""

# ruff: noqa: B009, RUF015  (each idiom as programs write it)
from __future__ import annotations

import array
import collections
import contextvars
import ctypes
import functools
import operator
import os
import sys
import types
import weakref
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import nn

import magpy_core
from tests.soundness.harness.families import Family, difference, main

GLOBAL = 1.0
ME = sys.modules[__name__]


class Kind(NamedTuple):
    make: Callable[[], Any]
    readers: dict[str, Callable[[Any], Any]]
    writers: dict[str, Callable[[Any, Any], Any]]


class Plain:
    shared = 1.0

    def __init__(self) -> None:
        self.v: Any = 1.0

    @property
    def prop(self) -> Any:
        return self.v

    @prop.setter
    def prop(self, value: Any) -> None:
        self.v = value

    def get(self) -> Any:
        return self.v

    def set(self, value: Any) -> None:
        self.v = value

    @classmethod
    def get_shared(cls) -> Any:
        return cls.shared

    @classmethod
    def set_shared(cls, value: Any) -> None:
        cls.shared = value


class Slotted:
    __slots__ = ("__weakref__", "v")

    def __init__(self) -> None:
        self.v: Any = 1.0


class Attribute(dict):  # type: ignore[type-arg]
    """Whose items are attributes, too."""

    def __init__(self) -> None:
        super().__init__(v=1.0)
        self.__dict__ = self


class Wrapped(collections.UserDict):  # type: ignore[type-arg]
    """A dict inside of an object."""


class Module(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(1))
        self.register_buffer("count", torch.ones(1))
        self.inner = nn.Sequential(nn.Linear(1, 1))
        self.v: Any = 1.0


def _global() -> Any:
    return GLOBAL


def _set_global(value: Any) -> None:
    global GLOBAL
    GLOBAL = value


def _cells() -> Any:
    v: Any = 1.0

    def get() -> Any:
        return v

    def put(value: Any) -> None:
        nonlocal v
        v = value

    return types.SimpleNamespace(get=get, put=put)


def _function(by: Any = 1.0, *, other: Any = 1.0) -> Any:
    return by


def _functions() -> Any:
    fn = types.FunctionType(_function.__code__, globals(), "made", (1.0,))
    fn.__kwdefaults__ = {"other": 1.0}
    fn.v = 1.0  # type: ignore[attr-defined]
    return fn


def _dicts() -> Any:
    d: dict[str, Any] = {"v": 1.0}
    return types.SimpleNamespace(
        d=d, same=d, proxy=types.MappingProxyType(d), chain=collections.ChainMap(d, {}), items=d.items(), values=d.values(),
        get=d.get, put=d.__setitem__, update=d.update, getter=functools.partial(operator.getitem, d, "v"),
    )  # fmt: skip


def _lists() -> Any:
    items: list[Any] = [1.0, 2.0]
    return types.SimpleNamespace(
        l=items, same=items, nested=[items], get=items.__getitem__, put=items.__setitem__, getter=operator.itemgetter(0),
        holder={"l": items},
    )  # fmt: skip


def _tensors() -> Any:
    base = torch.ones(3)
    return types.SimpleNamespace(
        t=base, view=base[:2], flat=base.view(3, 1), detached=base.detach(), data=base.data, array=base.numpy(),
        pair=(base, base),
    )  # fmt: skip


def _buffers() -> Any:
    memory = array.array("d", [1.0, 2.0])
    view = memoryview(memory)
    return types.SimpleNamespace(a=memory, m=view, n=np.frombuffer(memory), c=(ctypes.c_double * 2).from_buffer(memory))


def _weak() -> Any:
    o = Plain()
    return types.SimpleNamespace(o=o, ref=weakref.ref(o), proxy=weakref.proxy(o), d=weakref.WeakValueDictionary({"o": o}))


def _variables() -> Any:
    variable: contextvars.ContextVar[Any] = contextvars.ContextVar("v", default=1.0)
    variable.set(1.0)
    return types.SimpleNamespace(var=variable, context=contextvars.copy_context())


def _bound() -> Any:
    o = Plain()
    return types.SimpleNamespace(
        o=o, get=o.get, put=o.set, method=types.MethodType(Plain.get, o), partial=functools.partial(setattr, o, "v"),
        attr=operator.attrgetter("v"),
    )  # fmt: skip


KINDS: dict[str, Kind] = {
    "global": Kind(
        lambda: ME,
        {
            "function": lambda o: _global(),
            "attribute": lambda o: o.GLOBAL,
            "globals()": lambda o: globals()["GLOBAL"],
            "getattr": lambda o: getattr(o, "GLOBAL"),
            "vars": lambda o: vars(o)["GLOBAL"],
            "sys.modules": lambda o: sys.modules[__name__].GLOBAL,
            "function's": lambda o: _global.__globals__["GLOBAL"],
            "get": lambda o: o.__dict__.get("GLOBAL"),
            "eval": lambda o: eval("GLOBAL"),
        },
        {
            "function": lambda o, v: _set_global(v),
            "attribute": lambda o, v: setattr(o, "GLOBAL", v),
            "globals()": lambda o, v: operator.setitem(globals(), "GLOBAL", v),
            "update": lambda o, v: vars(o).update(GLOBAL=v),
            "function's": lambda o, v: _global.__globals__.update(GLOBAL=v),
            "delete": lambda o, v: (delattr(o, "GLOBAL"), setattr(o, "GLOBAL", v)),
        },
    ),
    "attribute": Kind(
        Plain,
        {
            "attribute": lambda o: o.v,
            "getattr": lambda o: getattr(o, "v"),
            "vars": lambda o: vars(o)["v"],
            "__dict__": lambda o: o.__dict__["v"],
            "get": lambda o: o.__dict__.get("v"),
            "property": lambda o: o.prop,
            "method": lambda o: o.get(),
            "object": lambda o: object.__getattribute__(o, "v"),
            "attrgetter": lambda o: operator.attrgetter("v")(o),
            "items": lambda o: dict(vars(o).items())["v"],
            "values": lambda o: next(iter(vars(o).values())),
            "property's": lambda o: Plain.prop.fget(o),  # type: ignore[attr-defined]
        },
        {
            "attribute": lambda o, v: setattr(o, "v", v),
            "vars": lambda o, v: operator.setitem(vars(o), "v", v),
            "update": lambda o, v: o.__dict__.update(v=v),
            "property": lambda o, v: setattr(o, "prop", v),
            "method": lambda o, v: o.set(v),
            "object": lambda o, v: object.__setattr__(o, "v", v),
            "delete": lambda o, v: (delattr(o, "v"), setattr(o, "v", v)),
            "pop": lambda o, v: (vars(o).pop("v"), vars(o).setdefault("v", v)),
            "property's": lambda o, v: Plain.prop.__set__(o, v),  # type: ignore[attr-defined]
        },
    ),
    "slot": Kind(
        Slotted,
        {
            "attribute": lambda o: o.v,
            "getattr": lambda o: getattr(o, "v"),
            "member": lambda o: Slotted.v.__get__(o),  # type: ignore[attr-defined]
            "object": lambda o: object.__getattribute__(o, "v"),
            "attrgetter": lambda o: operator.attrgetter("v")(o),
        },
        {
            "attribute": lambda o, v: setattr(o, "v", v),
            "member": lambda o, v: Slotted.__dict__["v"].__set__(o, v),
            "object": lambda o, v: object.__setattr__(o, "v", v),
            "delete": lambda o, v: (delattr(o, "v"), setattr(o, "v", v)),
        },
    ),
    "class": Kind(
        lambda: type("Own", (Plain,), {"shared": 1.0})(),
        {
            "instance": lambda o: o.shared,
            "class": lambda o: type(o).shared,
            "__dict__": lambda o: type(o).__dict__["shared"],
            "classmethod": lambda o: o.get_shared(),
            "getattr": lambda o: getattr(type(o), "shared"),
            "super": lambda o: super(type(o), o).shared,
        },
        {
            "class": lambda o, v: setattr(type(o), "shared", v),
            "instance": lambda o, v: setattr(o, "shared", v),
            "classmethod": lambda o, v: o.set_shared(v),
            "type": lambda o, v: type.__setattr__(type(o), "shared", v),
        },
    ),
    "attribute dict": Kind(
        Attribute,
        {"attribute": lambda o: o.v, "item": lambda o: o["v"], "get": lambda o: o.get("v"), "vars": lambda o: vars(o)["v"]},
        {
            "attribute": lambda o, v: setattr(o, "v", v),
            "item": lambda o, v: operator.setitem(o, "v", v),
            "update": lambda o, v: o.update(v=v),
            "vars": lambda o, v: vars(o).update(v=v),
        },
    ),
    "user dict": Kind(
        lambda: Wrapped(v=1.0),
        {
            "item": lambda o: o["v"],
            "data": lambda o: o.data["v"],
            "get": lambda o: o.get("v"),
            "items": lambda o: dict(o)["v"],
        },
        {
            "item": lambda o, v: operator.setitem(o, "v", v),
            "data": lambda o, v: operator.setitem(o.data, "v", v),
            "update": lambda o, v: o.update(v=v),
            "replace": lambda o, v: setattr(o, "data", {"v": v}),
        },
    ),
    "namespace": Kind(
        lambda: types.SimpleNamespace(v=1.0),
        {"attribute": lambda o: o.v, "vars": lambda o: vars(o)["v"], "text": lambda o: len(repr(o))},
        {"attribute": lambda o, v: setattr(o, "v", v), "vars": lambda o, v: vars(o).update(v=v)},
    ),
    "cell": Kind(
        _cells,
        {"function": lambda o: o.get(), "cell": lambda o: o.get.__closure__[0].cell_contents},
        {"function": lambda o, v: o.put(v), "cell": lambda o, v: setattr(o.put.__closure__[0], "cell_contents", v)},
    ),
    "default": Kind(
        _functions,
        {
            "call": lambda o: o(),
            "__defaults__": lambda o: o.__defaults__[0],
            "getattr": lambda o: getattr(o, "__defaults__")[0],
        },
        {"__defaults__": lambda o, v: setattr(o, "__defaults__", (v,))},
    ),
    "function attribute": Kind(
        _functions,
        {"attribute": lambda o: o.v, "__dict__": lambda o: o.__dict__["v"], "vars": lambda o: vars(o).get("v")},
        {"attribute": lambda o, v: setattr(o, "v", v), "__dict__": lambda o, v: o.__dict__.update(v=v)},
    ),
    "dict": Kind(
        _dicts,
        {
            "item": lambda o: o.d["v"],
            "same": lambda o: o.same["v"],
            "proxy": lambda o: o.proxy["v"],
            "chain": lambda o: o.chain["v"],
            "items": lambda o: dict(o.items)["v"],
            "values": lambda o: next(iter(o.values)),
            "get": lambda o: o.get("v"),
            "getter": lambda o: o.getter(),
            "star": lambda o: dict(**o.d)["v"],
            "or": lambda o: (o.d | {})["v"],
            "sum": lambda o: sum(o.values),
            "copy": lambda o: o.proxy.copy()["v"],
        },
        {
            "item": lambda o, v: operator.setitem(o.d, "v", v),
            "same": lambda o, v: operator.setitem(o.same, "v", v),
            "put": lambda o, v: o.put("v", v),
            "update": lambda o, v: o.update(v=v),
            "chain": lambda o, v: o.chain.update(v=v),
            "ior": lambda o, v: operator.ior(o.d, {"v": v}),
            "clear": lambda o, v: (o.d.clear(), o.d.setdefault("v", v)),
            "pop": lambda o, v: (o.d.popitem(), operator.setitem(o.d, "v", v)),
        },
    ),
    "list": Kind(
        _lists,
        {
            "item": lambda o: o.l[0],
            "same": lambda o: o.same[0],
            "nested": lambda o: o.nested[0][0],
            "get": lambda o: o.get(0),
            "getter": lambda o: o.getter(o.l),
            "star": lambda o: [*o.l][0],
            "iter": lambda o: next(iter(o.holder["l"])),
            "slice": lambda o: o.l[:1][0],
            "unpack": lambda o: (lambda a, *b: a)(*o.l),
        },
        {
            "item": lambda o, v: operator.setitem(o.l, 0, v),
            "same": lambda o, v: operator.setitem(o.same, 0, v),
            "put": lambda o, v: o.put(0, v),
            "slice": lambda o, v: operator.setitem(o.l, slice(0, 1), [v]),
            "insert": lambda o, v: (o.l.pop(0), o.l.insert(0, v)),
            "replace": lambda o, v: operator.setitem(o.l, slice(None), [v, 2.0]),
            "clear": lambda o, v: (o.nested[0].clear(), o.holder["l"].extend([v, 2.0])),
        },
    ),
    "tensor": Kind(
        _tensors,
        {
            "item": lambda o: o.t[0].item(),
            "view": lambda o: o.view[0].item(),
            "flat": lambda o: o.flat.sum().item(),
            "detached": lambda o: o.detached[0].item(),
            "data": lambda o: o.t.data[0].item(),
            "kept": lambda o: o.data[0].item(),
            "array": lambda o: float(o.array[0]),
            "list": lambda o: o.pair[1].tolist()[0],
            "float": lambda o: float(o.t[0]),
        },
        {
            "fill": lambda o, v: o.t[:1].fill_(v),
            "view": lambda o, v: operator.setitem(o.view, 0, v),
            "flat": lambda o, v: o.flat[0].copy_(torch.tensor([v])),
            "detached": lambda o, v: operator.setitem(o.detached, 0, v),
            "data": lambda o, v: o.t.data.__setitem__(0, v),
            "array": lambda o, v: operator.setitem(o.array, 0, v),
            "add": lambda o, v: o.pair[0].add_(1.0),
            "out": lambda o, v: torch.add(o.t, 1.0, out=o.t),
        },
    ),
    "memory": Kind(
        _buffers,
        {
            "array": lambda o: o.a[0],
            "memoryview": lambda o: o.m[0],
            "numpy": lambda o: float(o.n[0]),
            "ctypes": lambda o: o.c[0],
        },
        {
            "array": lambda o, v: operator.setitem(o.a, 0, v),
            "memoryview": lambda o, v: operator.setitem(o.m, 0, v),
            "numpy": lambda o, v: operator.setitem(o.n, 0, v),
            "ctypes": lambda o, v: operator.setitem(o.c, 0, v),
        },
    ),
    "weak": Kind(
        _weak,
        {
            "object": lambda o: o.o.v,
            "reference": lambda o: o.ref().v,
            "proxy": lambda o: o.proxy.v,
            "dict": lambda o: o.d["o"].v,
            "method": lambda o: o.proxy.get(),
        },
        {
            "object": lambda o, v: setattr(o.o, "v", v),
            "reference": lambda o, v: setattr(o.ref(), "v", v),
            "proxy": lambda o, v: setattr(o.proxy, "v", v),
            "method": lambda o, v: o.proxy.set(v),
        },
    ),
    "variable": Kind(
        _variables,
        {
            "get": lambda o: o.var.get(),
            "context": lambda o: contextvars.copy_context()[o.var],
            "run": lambda o: o.context[o.var],
        },
        {"set": lambda o, v: o.var.set(v), "run": lambda o, v: o.context.run(o.var.set, v)},
    ),
    "bound": Kind(
        _bound,
        {
            "method": lambda o: o.get(),
            "made": lambda o: o.method(),
            "self": lambda o: o.get.__self__.v,
            "object": lambda o: o.o.v,
            "attrgetter": lambda o: o.attr(o.o),
            "function": lambda o: o.get.__func__(o.o),
        },
        {"method": lambda o, v: o.put(v), "partial": lambda o, v: o.partial(v), "object": lambda o, v: setattr(o.o, "v", v)},
    ),
    "module": Kind(
        Module,
        {
            "attribute": lambda o: o.weight.item(),
            "table": lambda o: o._parameters["weight"].item(),
            "parameters": lambda o: next(o.parameters()).item(),
            "named": lambda o: dict(o.named_parameters())["weight"].item(),
            "state": lambda o: o.state_dict()["weight"].item(),
            "get": lambda o: o.get_parameter("weight").item(),
            "children": lambda o: (o.weight + o.inner[0].weight.sum() * 0).item(),
        },
        {
            "fill": lambda o, v: o.weight.data.fill_(v),
            "table": lambda o, v: o._parameters["weight"].data.fill_(v),
            "assign": lambda o, v: setattr(o, "weight", nn.Parameter(torch.full((1,), v))),
            "data": lambda o, v: setattr(o.weight, "data", torch.full((1,), v)),
            "load": lambda o, v: o.load_state_dict({**o.state_dict(), "weight": torch.full((1,), v)}),
            "replace": lambda o, v: operator.setitem(o._parameters, "weight", nn.Parameter(torch.full((1,), v))),
            "register": lambda o, v: o.register_parameter("weight", nn.Parameter(torch.full((1,), v))),
        },
    ),
    "buffer": Kind(
        Module,
        {
            "attribute": lambda o: o.count.item(),
            "table": lambda o: o._buffers["count"].item(),
            "buffers": lambda o: next(o.buffers()).item(),
            "state": lambda o: o.state_dict()["count"].item(),
        },
        {
            "add": lambda o, v: o.count.add_(1.0),
            "assign": lambda o, v: setattr(o, "count", torch.full((1,), v)),
            "table": lambda o, v: operator.setitem(o._buffers, "count", torch.full((1,), v)),
            "register": lambda o, v: o.register_buffer("count", torch.full((1,), v)),
            "delete": lambda o, v: (delattr(o, "count"), o.register_buffer("count", torch.full((1,), v))),
        },
    ),
    "submodule": Kind(
        Module,
        {
            "index": lambda o: o.inner[0].out_features,
            "table": lambda o: o.inner._modules["0"].out_features,
            "path": lambda o: o.get_submodule("inner.0").out_features,
            "children": lambda o: next(o.inner.children()).out_features,
            "modules": lambda o: list(o.modules())[2].out_features,
            "count": lambda o: sum(p.numel() for p in o.inner.parameters()),
        },
        {
            "index": lambda o, v: operator.setitem(o.inner, 0, nn.Linear(1, int(v))),
            "table": lambda o, v: operator.setitem(o.inner._modules, "0", nn.Linear(1, int(v))),
            "setattr": lambda o, v: setattr(o.inner, "0", nn.Linear(1, int(v))),
            "whole": lambda o, v: setattr(o, "inner", nn.Sequential(nn.Linear(1, int(v)))),
            "attribute": lambda o, v: setattr(o.inner[0], "out_features", int(v)),
        },
    ),
    "environment": Kind(
        lambda: os.environ.update(MAGPY_WAY="1.0"),
        {
            "environ": lambda o: float(os.environ["MAGPY_WAY"]),
            "getenv": lambda o: float(os.getenv("MAGPY_WAY", "0")),
            "get": lambda o: float(os.environ.get("MAGPY_WAY", "0")),
            "environb": lambda o: float(os.environb[b"MAGPY_WAY"]),
        },
        {
            "environ": lambda o, v: operator.setitem(os.environ, "MAGPY_WAY", str(v)),
            "putenv": lambda o, v: os.environ.update({"MAGPY_WAY": str(v)}),
            "environb": lambda o, v: operator.setitem(os.environb, b"MAGPY_WAY", str(v).encode()),
        },
    ),
}

CALLS = 7


def _life(kind: str, writer: str, first: str, second: str, compiled: bool) -> list[Any]:
    made = KINDS[kind]
    _set_global(1.0)
    o = made.make()
    read, again, write = made.readers[first], made.readers[second], made.writers[writer]
    read_last = next(iter(made.readers.values()))

    def region(x: torch.Tensor) -> Any:
        try:
            a = read(o)
            y = x * a
            write(o, a + 1.0)
            b = again(o)
            return y, x * b, read(o), b > 3
        except Exception as error:
            return type(error), str(error)[:60]

    target = magpy_core.compile(region, backend="eager") if compiled else region
    seen = []
    for call in range(CALLS):
        value = target(torch.full((2,), float(call + 1)))
        seen.append((repr([v.tolist() if isinstance(v, torch.Tensor) else v for v in value]), repr(read_last(o))))
        if call in (2, 4):
            for change in made.writers.values():
                change(o, 10.0 - call)
    return seen


def through(kind: str, writer: str, first: str, second: str) -> str | None:
    """How a region that reads, writes and reads again differs from eager mode; None where it doesn't."""
    return difference(_life, kind, writer, first, second)


CASES = [(k, w, a, b) for k, kind in KINDS.items() for w in kind.writers for a in kind.readers for b in kind.readers]
FAMILY = Family(through, ("kind", "writer", "first", "second"), CASES)


if __name__ == "__main__":
    raise SystemExit(main(FAMILY))
