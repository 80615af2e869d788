"""Callers: ways in which code calls something times kinds of callables times changes of what is called.

Native code and libraries call functions, methods, classes and objects without an event that says which; a change of the
function's code or defaults, or of the class's method, must be noticed all the same. `python -m
tests.soundness.generators.callers`. Key function: called.
"""

from __future__ import annotations

import collections
import functools
import itertools
import operator
import types
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils import _pytree
from torch.utils.checkpoint import checkpoint

import magpy_core
from tests.soundness.harness.families import Family, main

Tensor = torch.Tensor


@dataclass
class Callee:
    """What is called, the function that runs, and the class that gives its method by a name, if any."""

    call: Any
    function: Any
    owner: Any = None
    name: str = ""


def _scaled() -> Any:
    def scaled(x: Tensor, plus: float = 0.0) -> Tensor:
        return x + plus

    return scaled


def _object() -> Any:
    class Adder:
        def __call__(self, x: Tensor, plus: float = 0.0) -> Tensor:
            return x + plus

    return Adder


def _made() -> Any:
    class Made:
        def __new__(cls, x: Tensor, plus: float = 0.0) -> Any:
            return x + plus

    return Made


def _held() -> Any:
    class Held:
        def __init__(self, x: Tensor, plus: float = 0.0) -> None:
            self.x = x + plus

        def __add__(self, other: Any) -> Any:
            return self.x + other

    return Held


def _methods() -> Any:
    class Methods:
        @classmethod
        def of_class(cls, x: Tensor, plus: float = 0.0) -> Tensor:
            return x + plus

        @staticmethod
        def static(x: Tensor, plus: float = 0.0) -> Tensor:
            return x + plus

        def method(self, x: Tensor, plus: float = 0.0) -> Tensor:
            return x + plus

    return Methods


def _around(fn: Any, wrap: Callable[[Any], Any]) -> Callee:
    return Callee(wrap(fn), fn)


def _in(cls: Any, name: str, of: Callable[[Any], Any], wrap: Callable[[Any], Any] = lambda f: f) -> Callee:
    return Callee(wrap(of(cls)), cls.__dict__[name], cls, name)


def _bound(fn: Any) -> Any:
    return types.MethodType(fn, torch.ones(()))


CALLEES: dict[str, Callable[[], Callee]] = {
    "function": lambda: _around(_scaled(), lambda f: f),
    "partial": lambda: _around(_scaled(), functools.partial),
    "partial of a partial": lambda: _around(_scaled(), lambda f: functools.partial(functools.partial(f))),
    "method made by hand": lambda: _around(lambda s, x, plus=0.0: x + plus, _bound),
    "wrapped": lambda: _around(_scaled(), lambda f: functools.wraps(f)(lambda *a: f(*a))),
    "single dispatch": lambda: _around(_scaled(), functools.singledispatch),
    "method": lambda: _in(_methods(), "method", lambda c: c().method),
    "partial of a method": lambda: _in(_methods(), "method", lambda c: c().method, functools.partial),
    "method of the class": lambda: (lambda c: Callee(c.of_class, c.of_class.__func__))(_methods()),
    "static method": lambda: (lambda c: Callee(c.static, c.static))(_methods()),
    "class with __new__": lambda: _in(_made(), "__new__", lambda c: c),
    "class with __init__": lambda: _in(_held(), "__init__", lambda c: c),
    "partial of a class": lambda: _in(_held(), "__init__", lambda c: c, functools.partial),
    "object": lambda: _in(_object(), "__call__", lambda c: c()),
    "partial of an object": lambda: _in(_object(), "__call__", lambda c: c(), functools.partial),
}


def _sum(f: Any, v: Tensor) -> float:
    return float((f(v) + 0).sum())


def _sorted_in_place(f: Any, x: Tensor) -> Tensor:
    values = [x + 1, x]
    values.sort(key=lambda v: _sum(f, v))
    return values[0]


WAYS: dict[str, Callable[[Any, Tensor], Any]] = {
    "direct": lambda f, x: f(x),
    "star": lambda f, x: f(*[x]),
    "keywords": lambda f, x: f(**{"x": x}),
    "map": lambda f, x: list(map(f, [x])).pop(),
    "next of map": lambda f, x: next(map(f, (x,))),
    "starmap": lambda f, x: list(itertools.starmap(f, [(x,)])).pop(),
    "reduce": lambda f, x: functools.reduce(lambda a, b: f(b) + 0, [x, x]),
    "accumulate": lambda f, x: list(itertools.accumulate([x, x], lambda a, b: f(b) + 0))[1],
    "takewhile": lambda f, x: x + len(list(itertools.takewhile(lambda v: f(v) is not None, [x]))),
    "groupby": lambda f, x: x * len(list(itertools.groupby([x], functools.partial(f)))),
    "sorted": lambda f, x: sorted([x, x + 1], key=lambda v: _sum(f, v))[0],
    "sort": _sorted_in_place,
    "max": lambda f, x: max([x, x + 1], key=lambda v: _sum(f, v)),
    "partial": lambda f, x: functools.partial(f, x)(),
    "map of a partial": lambda f, x: list(map(functools.partial(f), [x])).pop(),
    "default factory": lambda f, x: collections.defaultdict(functools.partial(f, x))[1],
    "default factory, lambda": lambda f, x: collections.defaultdict(lambda: f(x))[1],
    "iter with a sentinel": lambda f, x: next(iter(functools.partial(f, x), None)),
    "operator.call": lambda f, x: getattr(operator, "call", lambda g, v: g(v))(f, x),
    "attribute": lambda f, x: types.SimpleNamespace(g=f).g(x),
    "value of a dict": lambda f, x: {"g": f}.get("g")(x),  # type: ignore[misc]
    "zip": lambda f, x: [g(v) for g, v in zip([f], [x], strict=True)].pop(),
    "checkpoint": lambda f, x: checkpoint(f, x, use_reentrant=False),
    "vmap": lambda f, x: torch.vmap(f)(x),
    "tree_map": lambda f, x: _pytree.tree_map(f, {"a": x})["a"],
}


def _other_method(callee: Callee) -> None:
    def held(self: Any, x: Tensor) -> None:
        self.x = x * 11

    def other(self: Any, x: Tensor) -> Tensor:
        return x * 11

    setattr(callee.owner, callee.name, held if callee.name == "__init__" else other)


def _other_code(callee: Callee) -> None:
    callee.function.__code__ = _code(callee.name)
    callee.function.__kwdefaults__ = {"plus": 4.0}


def _code(name: str) -> types.CodeType:
    def call(*args: Any, plus: float = 3.0) -> Any:
        return args[-1] * plus

    def start(*args: Any, plus: float = 3.0) -> None:
        args[0].x = args[1] * plus

    return start.__code__ if name == "__init__" else call.__code__


CHANGES: dict[str, Callable[[Callee], Any]] = {
    "defaults": lambda c: setattr(c.function, "__defaults__", (5.0,)),
    "defaults again": lambda c: setattr(c.function, "__defaults__", (6.0,)),
    "code": _other_code,
    "keyword default": lambda c: c.function.__kwdefaults__.__setitem__("plus", 8.0),
    "method": lambda c: _other_method(c) if c.owner is not None else None,
}


def _outcome(region: Callable[[Tensor], Any]) -> Any:
    try:
        result = region(torch.ones(2))
    except Exception as error:  # the program's own: it must be the same
        return repr(error)
    return getattr(result, "x", result).tolist()


def called(way: str, kind: str) -> str | None:
    """How ``kind`` called by ``way`` differs from eager mode, after one change and another; None where it doesn't."""
    callee = CALLEES[kind]()

    def region(x: Tensor) -> Any:
        return WAYS[way](callee.call, x)

    compiled = magpy_core.compile(region, backend="eager")
    for change, apply in {"nothing": lambda c: None, **CHANGES}.items():
        apply(callee)
        want, got = _outcome(region), [_outcome(compiled) for _ in range(3)]
        if got != [want] * 3:
            return f"{way}, {kind}, {change}: {want} expected, {got} found"
    return None


FAMILY = Family.product(called, way=WAYS, kind=CALLEES)


if __name__ == "__main__":
    raise SystemExit(main(FAMILY))
