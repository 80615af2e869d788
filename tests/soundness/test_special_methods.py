"""Special methods of the program's own classes, by the syntax that runs them: as often as in eager mode, same effects.

Every method reads and writes its object; the objects change between the calls of the region, and so do the numbers.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch

import magpy_core

pytestmark = pytest.mark.filterwarnings("ignore")

RUNS: list[Any] = []


class Counted:
    """A descriptor that works on the object it is asked for."""

    def __get__(self, thing: Any, cls: Any = None) -> Any:
        RUNS.append("get")
        return self if thing is None else thing.__dict__["k"]

    def __set__(self, thing: Any, value: Any) -> None:
        RUNS.append("set")
        thing.__dict__["n"] = thing.__dict__["k"] + value

    def __delete__(self, thing: Any) -> None:
        RUNS.append("delete")
        thing.__dict__["n"] = -1


class Thing:
    described = Counted()

    def __init__(self, k: Any = 1) -> None:
        self.__dict__.update(k=k, n=0, log=[])

    @property
    def shown(self) -> Any:
        self.n += 1
        return self.k

    @shown.setter
    def shown(self, value: Any) -> None:
        self.k = value

    @shown.deleter
    def shown(self) -> None:
        self.k = 9

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        self.__dict__["log"].append(name)
        return self.k

    def __setattr__(self, name: str, value: Any) -> None:
        self.__dict__[name] = value
        self.__dict__["log"].append((name, value))

    def __delattr__(self, name: str) -> None:
        self.__dict__["log"].append(("deleted", name))
        self.__dict__.pop(name, None)

    def __getitem__(self, key: Any) -> Any:
        self.log.append(key)
        return self.k * 2

    def __setitem__(self, key: Any, value: Any) -> None:
        self.log.append((key, value))
        self.k = value

    def __delitem__(self, key: Any) -> None:
        self.log.append(("deleted", key))

    def __iadd__(self, other: Any) -> Any:
        self.k += other
        return self

    def __enter__(self) -> Any:
        self.n += 1
        return self.k

    def __exit__(self, kind: Any, *rest: Any) -> bool:
        self.log.append(kind)
        return True


def counting(compute: Callable[..., Any]) -> Callable[..., Any]:
    def method(self: Any, *args: Any) -> Any:
        self.n += 1
        return compute(self.k, *args)

    return method


ANSWERS: dict[str, Callable[..., Any]] = {
    "__len__": int, "__int__": int, "__index__": int, "__hash__": int, "__float__": float, "__abs__": abs,
    "__bool__": lambda k: k > 2, "__iter__": lambda k: iter([k, k + 1]), "__contains__": lambda k, x: x == k,
    "__call__": lambda k, x: k + x, "__add__": lambda k, x: k + x, "__radd__": lambda k, x: x + k, "__neg__": lambda k: -k,
    "__eq__": lambda k, x: bool(k == x), "__lt__": lambda k, x: bool(k < x), "__repr__": lambda k: f"R{k}",
    "__str__": lambda k: f"S{k}", "__format__": lambda k, spec: f"F{k}", "__round__": lambda k: round(k),
    "__reversed__": lambda k: iter([k]), "__next__": lambda k: k, "__matmul__": lambda k, x: k * x,
    "__dir__": lambda k: ["a", f"k{k}"], "__copy__": lambda k: Thing(k), "__deepcopy__": lambda k, memo: Thing(k),
}  # fmt: skip
for special, compute in ANSWERS.items():
    setattr(Thing, special, counting(compute))


def unpacked(o: Any, x: Any, n: Any) -> Any:
    first, second = o
    return x * first + second


def deleted(o: Any, x: Any, n: Any) -> Any:
    del o.described, o.shown, o.unknown, o[n]
    return x * o.k


def added_in_place(o: Any, x: Any, n: Any) -> Any:
    alias = o
    alias += n
    o.k += n
    o.new = n
    o.new += 1
    return x * o.new


def entered(o: Any, x: Any, n: Any) -> Any:
    with o as k:
        x = x * k
        raise ValueError(n)
    return x


def looped(o: Any, x: Any, n: Any) -> Any:
    for value in o:
        x = x * value
    return x


def matched(o: Any, x: Any, n: Any) -> Any:
    match o:
        case 2:
            return x
        case _:
            return x * 3


def yielded(o: Any, x: Any, n: Any) -> Any:
    def values() -> Iterator[Any]:
        for step in range(3):
            o.n += 1
            yield o.k + step

    return x * sum(values())


USES: dict[str, Callable[..., Any]] = {
    "descriptor": lambda o, x, n: x * o.described,
    "set": lambda o, x, n: (setattr(o, "described", n), x),
    "property": lambda o, x, n: (x * o.shown, setattr(o, "shown", n)), "unknown": lambda o, x, n: x * o.unknown,
    "len": lambda o, x, n: x * len(o),
    "truth": lambda o, x, n: x * 2 if o else x,
    "not": lambda o, x, n: (x, not o),
    "sum": lambda o, x, n: x * sum(o),
    "in": lambda o, x, n: (x, n in o),
    "item": lambda o, x, n: x * o[n],
    "set item": lambda o, x, n: (o.__setitem__(1, n), x * 2),
    "call": lambda o, x, n: x * o(n),
    "apply": lambda o, x, n: o(x),
    "add": lambda o, x, n: x * (o + n),
    "add tensor": lambda o, x, n: o + x,
    "radd": lambda o, x, n: x * (n + o),
    "radd tensor": lambda o, x, n: x + o,
    "minus": lambda o, x, n: x * -o,
    "equal": lambda o, x, n: (x, o == n),
    "less": lambda o, x, n: (x, o < n),
    "hash": lambda o, x, n: (x, hash(o), {o: 1}[o]),
    "repr": lambda o, x, n: (x, repr(o)),
    "text": lambda o, x, n: (x, f"{o}", str(o), "%s" % o),  # noqa: UP031
    "int": lambda o, x, n: x * int(o) + float(o),
    "range": lambda o, x, n: (x, list(range(o)), list(range(20))[o]),
    "abs": lambda o, x, n: x * abs(o) * round(o),
    "reversed": lambda o, x, n: (x, list(reversed(o))),
    "next": lambda o, x, n: x * next(o),
    "matmul": lambda o, x, n: (x, o @ n),
    "max": lambda o, x, n: (x, max(o, 3) is o, sorted([o, o])[0] is o),
    "dir": lambda o, x, n: (x, dir(o)),
    "getattr": lambda o, x, n: (x, getattr(o, "unknown", n), hasattr(o, "other")),
    "vars": lambda o, x, n: (x, dict(vars(o))),
    "tensor": lambda o, x, n: x * torch.tensor(float(o)) + torch.full((2,), float(o)),
    "star": lambda o, x, n: (x, [*o]),
    "zip": lambda o, x, n: (x, list(zip(o, o, strict=True))),
    "map": lambda o, x, n: (x, list(map(o, [n, n]))),
    "filter": lambda o, x, n: (x, list(filter(o, [n, 0]))),
    "key": lambda o, x, n: (x, sorted([3, 1], key=o)),
    "any": lambda o, x, n: (x, any([o]), all([o])),
    "join": lambda o, x, n: (x, ",".join(map(str, [o]))),
    "tuple": lambda o, x, n: (x, (o, 1) == (n, 1), o in [n, 2], [n, o].count(n)),
    "copy": lambda o, x, n: (x, copy.copy(o).k, copy.deepcopy(o).k),
    **{use.__name__: use for use in (unpacked, deleted, added_in_place, entered, looped, matched, yielded)},
}  # fmt: skip


@pytest.mark.parametrize("numbers", [(1, 1, 1, 1, 1, 1, 1), (1, 2, 3, 2, 4, 3, 2)], ids=["same", "varied"])
@pytest.mark.parametrize("use", USES)
def test_same_as_plain_python(use: str, numbers: tuple[int, ...]) -> None:
    region, outcomes = USES[use], []
    for function in (region, magpy_core.compile(region, backend="eager")):
        RUNS.clear()
        thing, seen = Thing(), []
        for call, number in enumerate(numbers):
            if call >= 3:
                thing.__dict__["k"] = call
            try:
                result = repr(function(thing, torch.ones(2), number))
            except Exception as error:  # the program's own: it must be the same
                result = repr(error)
            seen.append((result, repr(thing.__dict__), list(RUNS)))
        outcomes.append(seen)
    assert outcomes[0] == outcomes[1]
