"""Introspection: everything an object tells about itself times kinds of objects times what changes them.

Functions, classes, modules, exceptions, iterators, loggers, locks, optimizers: each attribute and each method that takes
nothing is asked for inside the region, of an object from outside that is changed between the calls.
`python -m tests.soundness.generators.introspection`. Key function: told_of.
"""

# ruff: noqa: E501  (tables of kinds and changes, a line each)
from __future__ import annotations

import array
import collections
import contextlib
import contextvars
import dataclasses
import enum
import functools
import inspect
import io
import itertools
import logging
import queue
import random
import re
import threading
import types
import warnings
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.utils.hooks import RemovableHandle

import magpy_core
from tests.soundness.harness.families import Family, difference, main


@dataclasses.dataclass
class Kind:
    """How such an object is made, and what is done to it, one after the other, between the calls."""

    make: Callable[[], Any]
    changes: tuple[Callable[[Any], object], ...]


def _function() -> Any:
    held = 1.0

    def function(a: int, b: float = 2.0, *, c: int = 3) -> float:
        """About it."""
        return a + b + c + held

    return function


def _other(a: int, b: float = 5.0, *, c: int = 3) -> float:
    return a * b * c


def _class() -> Any:
    class Base:
        low = 1

    class Made(Base):
        """About it."""

        high: int = 2
        __slots__ = ("slot",)

        def method(self) -> int:
            return 1

        @property
        def prop(self) -> int:
            return 2

    return Made


class _Bases:
    pass


def _set(name: str, value: Any) -> Callable[[Any], object]:
    return lambda o: setattr(o, name, value)


def _delete(name: str) -> Callable[[Any], object]:
    return lambda o: delattr(o, name)


def _raised() -> Any:
    try:
        try:
            raise KeyError("inner")
        except KeyError as error:
            raise ValueError("outer", 2) from error
    except ValueError as error:
        return error


def _generator() -> Any:
    def generate() -> Any:
        yield from range(100)

    return generate()


def _module() -> Any:
    made: Any = types.ModuleType("made", "About it.")
    made.value = 1
    return made


def _enum() -> Any:
    return enum.Enum("Color", {"RED": 1, "BLUE": 2})


def _dataclass() -> Any:
    return dataclasses.make_dataclass("Point", [("x", int, 1), ("y", int, 2)])()


def _net() -> Any:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3), nn.Sequential(nn.Dropout(0.5)))


def _optimizer() -> Any:
    torch.manual_seed(0)
    net = nn.Linear(2, 2)
    net(torch.ones(1, 2)).sum().backward()
    return torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)


def _scheduler() -> Any:
    return torch.optim.lr_scheduler.StepLR(_optimizer(), 2)


def _logger() -> Any:
    return logging.Logger("made", logging.INFO)


def _step(o: Any) -> None:
    o.optimizer.step()
    o.step()


class _Callable:
    def __call__(self) -> int:
        return 1


class _Plain:
    """About it."""

    shared = 1

    def __init__(self) -> None:
        self.own = 1

    def method(self) -> Any:
        return self.own


def _plain_class_instance() -> Any:
    return type("Made", (_Plain,), {})()


KINDS: dict[str, Kind] = {
    "function": Kind(_function, (
        _set("__name__", "renamed"), _set("__doc__", "Other."), _set("__defaults__", (4.0,)), lambda f: setattr(f, "__kwdefaults__", {"c": 9}),
        lambda f: setattr(f, "__annotations__", {"a": float}), _set("__module__", "elsewhere"), _set("__qualname__", "A.b"), _set("tag", 3),
        lambda f: f.__annotations__.update(b=str), lambda f: f.__kwdefaults__.update(c=10), _set("__wrapped__", print),
        lambda f: setattr(f.__closure__[0], "cell_contents", 7.0), _set("__defaults__", None), _delete("tag"),
    )),
    "lambda": Kind(lambda: lambda x=1: x, (_set("__code__", (lambda x=1: x + 5).__code__), _set("__defaults__", (7,)))),
    "bound method": Kind(lambda: _plain_class_instance().method, (
        lambda m: setattr(m.__self__, "own", 5), lambda m: setattr(type(m.__self__), "shared", 4),
        lambda m: setattr(type(m.__self__), "__doc__", "Other."),
    )),
    "class": Kind(_class, (
        _set("__name__", "Renamed"), _set("__qualname__", "A.Renamed"), _set("__doc__", "Other."), _set("__module__", "elsewhere"),
        _set("low", 5), _set("high", 6), lambda c: setattr(c.__mro__[1], "low", 9), lambda c: c.__annotations__.update(new=int),
        _set("added", 1), _delete("added"), lambda c: type("Sub", (c,), {}), lambda c: setattr(c, "method", lambda self: 2),
        lambda c: setattr(c, "__annotations__", {}), lambda c: setattr(c, "prop", property(lambda self: 3)), _delete("low"),
    )),
    "instance": Kind(_plain_class_instance, (
        _set("own", 2), _set("new", 1), lambda o: setattr(type(o), "shared", 8), _set("shared", 3), _delete("own"),
        lambda o: setattr(type(o), "method", lambda self: 5), lambda o: setattr(o, "__class__", type("Other", (_Plain,), {})),
        lambda o: setattr(o, "__dict__", {"own": 77}),
    )),
    "module": Kind(_module, (_set("value", 2), _set("__doc__", "Other."), _set("__name__", "renamed"), _set("__file__", "f.py"),
                             _set("__getattr__", lambda name: 1), _delete("value"))),
    "exception": Kind(_raised, (
        _set("args", (1,)), lambda e: e.add_note("noted"), _set("__cause__", None), _set("__context__", KeyError("c")),
        _set("__suppress_context__", False), _set("code", 3), lambda e: e.with_traceback(None),
    )),
    "os error": Kind(lambda: OSError(2, "no", "name"), (_set("errno", 5), _set("filename", "other"), _set("strerror", "yes"))),
    "stop iteration": Kind(lambda: StopIteration(1), (_set("value", 2), _set("args", (4,)))),
    "unicode error": Kind(lambda: UnicodeDecodeError("utf8", b"ab", 0, 1, "why"), (_set("start", 1), _set("reason", "so"))),
    "generator": Kind(_generator, (next, next, lambda g: g.close())),
    "list iterator": Kind(lambda: iter([1, 2, 3]), (next, next, next)),
    "reversed": Kind(lambda: reversed([1, 2, 3]), (next, next)),
    "enumerate": Kind(lambda: enumerate([1, 2, 3]), (next, next)),
    "count": Kind(lambda: itertools.count(2), (next, next)),
    "cycle": Kind(lambda: itertools.cycle([1, 2]), (next, next)),
    "zip": Kind(lambda: zip([1, 2, 3], [4, 5, 6], strict=True), (next, next)),
    "map": Kind(lambda: map(str, [1, 2, 3]), (next, next)),
    "partial": Kind(lambda: functools.partial(_other, 1, b=2), (
        lambda p: p.keywords.update(b=3), _set("tag", 1), lambda p: p.__setstate__((_other, (2,), {"b": 1}, {})),
    )),
    "cached": Kind(lambda: functools.lru_cache(lambda x=1: x), (lambda f: f(), lambda f: f(2), lambda f: f.cache_clear(),
                                                                _set("tag", 1), _set("__doc__", "Other."))),
    "property": Kind(lambda: property(_other, None, None, "About it."), (_set("__doc__", "Other."),)),
    "cell": Kind(lambda: types.CellType(1), (_set("cell_contents", 2), _set("cell_contents", "text"), _delete("cell_contents"))),
    "list": Kind(lambda: [3, 1, 2], (lambda c: c.append(4), lambda c: c.reverse(), lambda c: c.clear())),
    "dict": Kind(lambda: {"b": 1, "a": 2}, (lambda c: c.update(c=3), lambda c: c.update(b=5), lambda c: c.pop("b"), lambda c: c.clear())),
    "set": Kind(lambda: {1, 2}, (lambda c: c.add(3), lambda c: c.discard(1), lambda c: c.clear())),
    "deque": Kind(lambda: collections.deque([1, 2], maxlen=3), (lambda c: c.append(3), lambda c: c.append(4), lambda c: c.rotate(1))),
    "defaultdict": Kind(lambda: collections.defaultdict(list), (lambda c: c["a"], _set("default_factory", int), lambda c: c["b"])),
    "counter": Kind(lambda: collections.Counter("aab"), (lambda c: c.update("b"), lambda c: c.subtract("a"), lambda c: c.clear())),
    "ordered dict": Kind(lambda: collections.OrderedDict(a=1, b=2), (lambda c: c.move_to_end("a"), lambda c: c.update(c=1))),
    "chain map": Kind(lambda: collections.ChainMap({"a": 1}, {"b": 2}), (lambda c: c.maps[1].update(b=3), lambda c: c.maps.pop())),
    "mapping proxy": Kind(lambda: types.MappingProxyType(vars(_class())), ()),
    "bytearray": Kind(lambda: bytearray(b"abc"), (lambda b: b.append(65), lambda b: b.reverse(), lambda b: b.clear())),
    "array": Kind(lambda: array.array("d", [1, 2]), (lambda a: a.append(3), lambda a: a.byteswap(), lambda a: a.pop())),
    "memoryview": Kind(lambda: memoryview(bytearray(b"abcd")), (lambda m: m.__setitem__(0, 65), lambda m: m.release())),
    "namespace": Kind(lambda: types.SimpleNamespace(a=1), (_set("a", 2), _set("b", 3), _delete("a"))),
    "enum class": Kind(_enum, (_set("added", 1), _set("__doc__", "Other."))),
    "enum member": Kind(lambda: _enum().RED, (_set("added", 1), _set("_value_", 7), _set("_name_", "GREEN"))),
    "dataclass": Kind(_dataclass, (_set("x", 5), lambda o: setattr(type(o), "y", 9), _set("z", 1))),
    "string io": Kind(lambda: io.StringIO("ab\ncd"), (lambda f: f.read(1), lambda f: f.write("x"), lambda f: f.close())),
    "bytes io": Kind(lambda: io.BytesIO(b"ab\ncd"), (lambda f: f.read(1), lambda f: f.write(b"x"), lambda f: f.close())),
    "lock": Kind(threading.Lock, (lambda k: k.acquire(), lambda k: k.release())),
    "event": Kind(threading.Event, (lambda e: e.set(), lambda e: e.clear())),
    "semaphore": Kind(lambda: threading.Semaphore(2), (lambda e: e.acquire(), lambda e: e.release(2))),
    "thread": Kind(lambda: threading.Thread(target=print, args=("",), name="made"), (_set("name", "renamed"), _set("daemon", True))),
    "queue": Kind(queue.Queue, (lambda q: q.put(1), lambda q: q.put(2), lambda q: q.get())),
    "simple queue": Kind(queue.SimpleQueue, (lambda q: q.put(1), lambda q: q.put(2), lambda q: q.get())),
    "logger": Kind(_logger, (
        lambda g: g.setLevel("ERROR"), _set("propagate", False), _set("disabled", True), lambda g: g.addHandler(logging.NullHandler()),
        _set("name", "renamed"), lambda g: g.addFilter(lambda r: True), _set("parent", logging.getLogger()),
    )),
    "handler": Kind(logging.NullHandler, (lambda h: h.setLevel("ERROR"), lambda h: h.set_name("named"), lambda h: h.setFormatter(None))),
    "random": Kind(lambda: random.Random(1), (lambda r: r.random(), lambda r: r.seed(3), lambda r: r.gauss(0, 1))),
    "context variable": Kind(lambda: contextvars.ContextVar("v", default=1), (lambda v: v.set(2), lambda v: v.set("text"))),
    "weak reference": Kind(lambda: weakref.ref(_KEPT), (lambda r: setattr(_KEPT, "own", _KEPT.own + 1),)),
    "weak set": Kind(lambda: weakref.WeakSet([_KEPT]), (lambda s: s.clear(), lambda s: s.add(_Plain))),
    "exit stack": Kind(contextlib.ExitStack, (lambda s: s.callback(print), lambda s: s.pop_all())),
    "callable": Kind(lambda: type("Made", (_Callable,), {})(), (lambda o: setattr(type(o), "__call__", lambda self: 2), _set("a", 1))),
    "code": Kind(lambda: _other.__code__, ()),
    "pattern": Kind(lambda: re.compile("a(b)"), ()),
    "ndarray": Kind(lambda: np.arange(6.0).reshape(2, 3), (
        lambda a: a.__setitem__((0, 0), 9), lambda a: a.setflags(write=False), _set("shape", (3, 2)), lambda a: a.sort(),
    )),
    "numpy generator": Kind(lambda: np.random.RandomState(0), (lambda g: g.rand(), lambda g: g.seed(1))),
    "net": Kind(_net, (
        lambda n: n.eval(), lambda n: n[0].requires_grad_(False), lambda n: n.double(), lambda n: n.add_module("new", nn.ReLU()),
        lambda n: n[1].running_mean.add_(1), lambda n: n.register_buffer("b", torch.ones(1)), lambda n: n.pop(1),
        lambda n: n.register_forward_hook(lambda *a: None), lambda n: n[0].weight.data.zero_(), _set("extra", 1), lambda n: n.train(),
        lambda n: setattr(n[0], "out_features", 7), lambda n: n.register_parameter("p", None), lambda n: setattr(type(n[0]), "tag", 1),
        lambda n: delattr(type(n[0]), "tag"), lambda n: n[0].register_state_dict_pre_hook(lambda *a: None),
    )),
    "linear": Kind(lambda: nn.Linear(2, 3), (_set("bias", None), _set("in_features", 5), lambda n: n.half(), lambda n: n.eval())),
    "parameter list": Kind(lambda: nn.ParameterList([torch.ones(2)]), (lambda p: p.append(torch.ones(3)), lambda p: p.half())),
    "module dict": Kind(lambda: nn.ModuleDict({"a": nn.ReLU()}), (lambda d: d.update({"b": nn.Tanh()}), lambda d: d.pop("a"))),
    "optimizer": Kind(_optimizer, (
        lambda o: o.step(), lambda o: o.param_groups[0].update(lr=0.5), lambda o: o.zero_grad(), lambda o: o.state.clear(),
        lambda o: o.add_param_group({"params": [nn.Parameter(torch.ones(1))]}), lambda o: o.register_step_pre_hook(lambda *a: None),
        lambda o: o.defaults.update(lr=7.0),
    )),
    "scheduler": Kind(_scheduler, (_step, _step, _set("gamma", 0.5), _step, _set("last_epoch", 0))),
    "generator of torch": Kind(lambda: torch.Generator().manual_seed(1), (lambda g: g.manual_seed(2), lambda g: torch.rand(1, generator=g))),
    "storage": Kind(lambda: torch.arange(4.0).untyped_storage(), (lambda s: s.resize_(8), lambda s: s.fill_(1))),
    "dataset": Kind(lambda: torch.utils.data.TensorDataset(torch.arange(4.0)), (_set("tensors", (torch.ones(2),)), _set("tag", 1))),
    "sampler": Kind(lambda: torch.utils.data.BatchSampler(range(5), 2, False), (_set("batch_size", 3), _set("drop_last", True))),
    "distribution": Kind(lambda: torch.distributions.Normal(0.0, 1.0), (_set("loc", torch.tensor(2.0)), _set("scale", torch.tensor(3.0)))),
    "warning filters": Kind(lambda: warnings.filters, ()),
    "size": Kind(lambda: torch.Size([2, 3]), ()),
}  # fmt: skip
_KEPT: Any = _Plain()

# What writes, blocks, ends, runs code of its own kind each time, or differs from run to run by itself.
_NOT = frozenset({
    "__init__", "__new__", "__del__", "__hash__", "__sizeof__", "__reduce__", "__reduce_ex__", "__getstate__", "__dir__", "__weakref__",
    "__subclasshook__", "__init_subclass__", "__builtins__", "__globals__", "__traceback__", "acquire", "wait", "get", "join", "run",
    "start", "ident", "native_id", "pop", "popitem", "popleft", "clear", "close", "release", "detach", "buffer_info", "__next__",
    "__enter__", "__exit__", "__aenter__", "__aexit__", "__call__", "sort", "reverse", "readline", "read", "readlines", "write",
    "getbuffer", "flush", "truncate", "cuda", "xpu", "ipu", "mtia", "share_memory", "data_ptr", "_cdata", "ctypes", "data", "__array_interface__",
    "__array_struct__", "byteswap", "resize", "random", "gauss", "getrandbits", "rand", "randn", "seed", "step", "cpu", "fileno", "sample",
    "rsample", "compile", "double", "half", "float", "bfloat16", "train", "eval", "zero_grad", "requires_grad_", "put", "get_nowait", "filter",
    "handle", "send", "throw", "cache_clear", "tobytes", "__loader__", "__spec__", "gi_frame", "gi_code", "__code__", "__closure__",
    "__context__", "__cause__", "__subclasses__", "__static_attributes__", "f_back", "cr_frame", "callHandlers", "set", "notify",
    "notify_all", "__firstlineno__", "__mro_entries__", "emit", "handleError", "createLock", "random_sample", "normalvariate", "betavariate",
    "expovariate", "vonmisesvariate", "standard_normal", "standard_cauchy", "standard_exponential", "bytes", "tomaxint", "lognormal", "task_done",
    "__abstractmethods__", "findCaller", "push", "pop_all", "rotate", "optimizer", "uniform", "normal", "gumbel", "laplace", "logistic", "beta",
    "normal_", "share_memory_", "pin_memory", "seed_", "shutdown", "_shutdown", "device_ids", "_handle", "mps", "hpu", "filename", "__prepare__",
    "__instancecheck__", "__subclasscheck__", "fill_", "randint", "exponential", "poisson", "rayleigh", "permutation", "_typed_storage",
    "acquire_lock", "release_lock", "initialize_settings", "lognormvariate", "triangular", "set_state",
})  # fmt: skip
_ADDRESS = re.compile(r"0x[0-9a-fA-F]+|\d{12,}")


def asked_of(kind: str) -> list[str]:
    """What to ask an object of this kind: attributes, methods that take nothing (``name()``), and built-in functions."""
    names = [n for n in dir(KINDS[kind].make()) if n not in _NOT]
    if isinstance(KINDS[kind].make(), type):
        names += [n for n in ("__name__", "__qualname__", "__mro__", "__bases__", "__annotations__", "mro")]
    out: list[str] = []
    for name in dict.fromkeys(names):
        obj = KINDS[kind].make()
        try:
            value = getattr(obj, name)
        except Exception:
            out.append(name)
            continue
        out.append(name)
        if callable(value) and not isinstance(value, type) and not name.startswith("_") and not inspect.isclass(value):
            with contextlib.suppress(Exception):
                value()
                out.append(f"{name}()")
    return [*out, *BUILTINS]


BUILTINS: dict[str, Callable[[Any], Any]] = {
    "repr": repr, "str": str, "len": len, "bool": bool, "vars": lambda o: dict(vars(o)), "dir": lambda o: [n for n in dir(o) if n != "__weakref__"],
    "iter": lambda o: [type(v).__name__ for v in itertools.islice(o, 9)], "type": lambda o: type(o).__name__, "callable": callable,
    "hasattr": lambda o: [hasattr(o, n) for n in ("a", "tag", "new", "own", "added", "value", "__len__", "__call__")],
    "isinstance": lambda o: isinstance(o, (list, dict, types.FunctionType, _Plain, nn.Module)), "list": lambda o: list(map(_text, itertools.islice(o, 9))),
    "signature": lambda o: str(inspect.signature(o)), "doc": inspect.getdoc, "format": lambda o: f"{o}",
    "length hint": lambda o: o.__length_hint__(), "contains": lambda o: ("a" in o, 1 in o) if hasattr(o, "__len__") else None, "call": lambda o: o(),
    "first": lambda o: o[0], "key": lambda o: o["a"], "named": lambda o: [n for n, _ in o.named_parameters()],
    "parameters": lambda o: [p.dtype for p in o.parameters()], "state": lambda o: sorted(o.state_dict()),
    "equal": lambda o: (o == o, o == 1, o != None), "getattr": lambda o: getattr(o, "tag", getattr(o, "a", "none")),  # noqa: E711
}  # fmt: skip


def _text(value: Any, depth: int = 0) -> Any:
    if isinstance(value, torch.Tensor):
        return "tensor", str(value.dtype), tuple(value.shape), repr(value.detach().tolist()), value.requires_grad
    if type(value) in (list, tuple, torch.Size) and depth < 4:
        return type(value).__name__, [_text(v, depth + 1) for v in value]
    if isinstance(value, dict) and depth < 4:
        return type(value).__name__, [(_text(k, depth + 1), _text(v, depth + 1)) for k, v in value.items()]
    if isinstance(value, np.ndarray):
        return "array", str(value.dtype), value.shape, value.tolist()
    if isinstance(value, types.GeneratorType):
        return "generator"
    return type(value).__name__, _ADDRESS.sub("0x", repr(value)).replace("region", "_")


def _life(kind: str, asked: str, compiled: bool) -> list[Any]:
    _KEPT.own = 1
    random.seed(0)
    torch.manual_seed(0)
    RemovableHandle.next_id = 0
    holder = types.SimpleNamespace(o=KINDS[kind].make())
    name = asked.removesuffix("()")
    builtin = BUILTINS.get(asked)

    def region(x: torch.Tensor) -> Any:
        try:
            if builtin is not None:
                return x, builtin(holder.o)
            value = getattr(holder.o, name)
            return x, value() if asked.endswith("()") else value
        except Exception as error:
            return x, ("raised", type(error).__name__, str(error))

    target = magpy_core.compile(region, backend="eager") if compiled else region
    seen = []
    for change in (None, None, *KINDS[kind].changes):
        if change is not None:
            try:
                change(holder.o)
            except Exception as error:
                seen.append(type(error).__name__)
        for _ in range(3):
            seen.append(_text(target(torch.ones(2))[1]))
    return seen


def told_of(kind: str, asked: str) -> str | None:
    """How a region that asks this of such an object differs from eager mode over the changes; None where it doesn't."""
    return difference(_life, kind, asked)


with warnings.catch_warnings(action="ignore"):  # some of what is asked is deprecated
    FAMILY = Family(told_of, ("kind", "asked"), [(kind, asked) for kind in KINDS for asked in asked_of(kind)])


if __name__ == "__main__":
    raise SystemExit(main(FAMILY))
