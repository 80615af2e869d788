"""Laws: a hook runs no operation of the program's and none of its code a second time; a guard runs none of its code at all.

The classes here define every special method they can and count the runs of each.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
import torch

import magpy_core
from magpy_core.regions.api import region_of

RUNS: Counter[str] = Counter()


def _counted(name: str, fn: Callable[..., Any]) -> Callable[..., Any]:
    def method(self: Any, *args: Any) -> Any:
        RUNS[name] += 1
        return fn(self, *args)

    return method


_METHODS: dict[str, Callable[..., Any]] = {
    "__eq__": lambda self, other: self is other, "__ne__": lambda self, other: self is not other,
    "__lt__": lambda self, other: True, "__gt__": lambda self, other: False, "__hash__": lambda self: 7,
    "__len__": lambda self: 2, "__bool__": lambda self: True, "__iter__": lambda self: iter((1.0, 2.0)),
    "__getitem__": lambda self, key: 3.0, "__contains__": lambda self, value: True, "__call__": lambda self, x: x + 1,
    "__index__": lambda self: 1, "__int__": lambda self: 1, "__float__": lambda self: 1.5,
    "__add__": lambda self, other: other + 1, "__radd__": lambda self, other: other + 1, "__neg__": lambda self: self,
    "__repr__": lambda self: "Loud()", "__str__": lambda self: "loud", "__format__": lambda self, spec: "loud",
    "__enter__": lambda self: self, "__exit__": lambda self, *error: None,
    "__getattribute__": lambda self, name: object.__getattribute__(self, name),
}  # fmt: skip


class Meta(type):
    def __instancecheck__(cls, obj: Any) -> bool:
        RUNS["Meta.__instancecheck__"] += 1
        return type.__instancecheck__(cls, obj)

    def __getattribute__(cls, name: str) -> Any:
        RUNS["Meta.__getattribute__"] += 1
        return type.__getattribute__(cls, name)

    def __call__(cls, *args: Any) -> Any:
        RUNS["Meta.__call__"] += 1
        return type.__call__(cls, *args)

    def __eq__(cls, other: object) -> bool:
        RUNS["Meta.__eq__"] += 1
        return cls is other

    def __hash__(cls) -> int:
        RUNS["Meta.__hash__"] += 1
        return 5


def _class(metaclass: type, left_out: tuple[str, ...] = ()) -> Any:
    namespace: dict[str, Any] = {n: _counted(n, fn) for n, fn in _METHODS.items() if n not in left_out}
    namespace["__class__"] = property(_counted("__class__", lambda self: type(self)))
    namespace["shown"] = property(_counted("shown", lambda self: 2.0))
    return metaclass("Loud", (), namespace)


Loud = _class(type)
Plainer = _class(type, ("__getattribute__",))
WithMeta = _class(Meta, ("__getattribute__",))

_REGIONS: dict[str, Callable[..., Any]] = {
    "nothing": lambda x, v: x + 1,
    "attribute": lambda x, v: x + v.value,
    "property": lambda x, v: x + v.shown,
    "item": lambda x, v: x + v[0],
    "length": lambda x, v: x + len(v),
    "truth": lambda x, v: x + 1 if v else x,
    "iteration": lambda x, v: x + sum(v),
    "equality": lambda x, v: x + (v == v),
    "order": lambda x, v: x + (v < 3),
    "membership": lambda x, v: x + (3 in v),
    "member of a list": lambda x, v: x + (v in [v]),
    "identity": lambda x, v: x + (v is x),
    "call": lambda x, v: v(x),
    "operator": lambda x, v: 1 + v,
    "number": lambda x, v: x + int(v) + float(v),
    "index": lambda x, v: x + [1.0, 2.0][v],
    "hash": lambda x, v: x + {v: 1.0}[v],
    "text": lambda x, v: x + len(str(v) + repr(v) + f"{v}"),
    "isinstance": lambda x, v: x + isinstance(v, Loud),
    "type": lambda x, v: x + (type(v) is Loud),
    "getattr": lambda x, v: x + getattr(v, "missing", 1.0),
    "with": lambda x, v: _with(x, v),
    "negation": lambda x, v: x + (-v).value,
}


# MagPy keeps classes in sets, which runs these methods of a metaclass: see test_methods_of_a_metaclass_run_while_recording.
_OF_METACLASS = frozenset({"Meta.__eq__", "Meta.__hash__", "Meta.__getattribute__"})


def _known(runs: Counter[str]) -> Counter[str]:
    return Counter({name: n for name, n in runs.items() if name not in _OF_METACLASS})


def _with(x: Any, v: Any) -> Any:
    with v as entered:
        return x + entered.value


def _made(cls: Any) -> Any:
    obj = cls()
    obj.value = 2.0
    return obj


def _runs(fn: Callable[..., Any], value: Any) -> tuple[Counter[str], Any]:
    RUNS.clear()
    result = fn(torch.ones(3), value)
    return Counter(RUNS), result


@pytest.mark.parametrize("cls", [Loud, Plainer, WithMeta], ids=["loud", "plainer", "metaclass"])
@pytest.mark.parametrize("name", _REGIONS)
def test_user_code_runs_as_often_as_in_plain_python(name: str, cls: Any) -> None:
    region, value = _REGIONS[name], _made(cls)
    plain, want = _runs(region, value)
    compiled = magpy_core.compile(region, backend="eager")
    recorded, got = _runs(compiled, value)
    assert _known(recorded) == _known(plain)
    assert "MP901" not in [f.code for f in region_of(compiled).findings.values()]
    assert isinstance(got, type(want)) and (not isinstance(got, torch.Tensor) or torch.equal(got, want))
    for capture in magpy_core.captures(compiled):
        RUNS.clear()
        capture.matches((torch.ones(3), value), {})
        capture.matches((torch.ones(3), _made(Plainer)), {})
        assert not _known(RUNS), "a guard ran the program's code"


@pytest.mark.parametrize("name", ["attribute", "item", "length", "hash", "call"])
def test_a_replay_runs_none_of_it(name: str) -> None:
    region, value = _REGIONS[name], _made(Plainer)
    want = region(torch.ones(3), value)
    compiled = magpy_core.compile(region, backend="eager")
    compiled(torch.ones(3), value)
    runs, got = _runs(compiled, value)
    assert torch.equal(got, want)
    if region_of(compiled).hits:
        assert not runs


def test_methods_of_a_metaclass_run_while_recording() -> None:
    """How it is today, against law 4: a class whose metaclass defines ``__hash__`` is hashed by the recorder."""
    region, value = _REGIONS["attribute"], _made(WithMeta)
    plain, _ = _runs(region, value)
    recorded, _ = _runs(magpy_core.compile(region, backend="eager"), value)
    assert not plain
    assert recorded["Meta.__hash__"] > 0


class CountedNumber(int):
    hashed = 0

    def __hash__(self) -> int:
        CountedNumber.hashed += 1
        return int.__hash__(self)

    __eq__ = int.__eq__


@pytest.mark.parametrize(
    "use", [lambda d, k: d.pop(k), lambda d, k: d.setdefault(k, 3), lambda d, k: d[k], lambda d, k: d.__delitem__(k)]
)
def test_a_written_slot_is_noted_without_the_hash_of_its_key(use: Any) -> None:
    key, counts = CountedNumber(1), []
    for compiles in (False, True):
        table = {"a": 1, key: 2}

        def region(x: torch.Tensor, table: Any = table) -> Any:
            return x * 2, use(table, key)

        CountedNumber.hashed = 0
        (magpy_core.compile(region, backend="eager") if compiles else region)(torch.ones(1))
        counts.append(CountedNumber.hashed)
    assert counts[0] == counts[1]
