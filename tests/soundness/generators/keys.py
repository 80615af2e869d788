"""Keys: classes that hash and compare in ways of their own, times everything a dict or a set does with a key.

A dict runs its keys' ``__hash__`` and ``__eq__``, which are the program's code: a recording, a guard or a replay that looks
a key up once more than the program did is seen by whoever counts. Key function: keyed. `python -m
tests.soundness.generators.keys`.
"""

from __future__ import annotations

import collections
import copy
import dataclasses
import enum
import functools
import operator
import types
from collections.abc import Callable
from typing import Any, NamedTuple

import torch

import magpy_core
from tests.soundness.harness.families import Family, difference, main

RUNS: list[str] = []
"""What the classes below note whenever they are asked."""


class Pure:
    def __init__(self, k: int) -> None:
        self.k = k

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Pure) and self.k == other.k

    def __hash__(self) -> int:
        return hash((Pure, self.k))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.k})"


class Constant(Pure):
    """All have one hash, so that each is compared with each."""

    __eq__ = Pure.__eq__

    def __hash__(self) -> int:
        return 11


class Counting(Pure):
    def __eq__(self, other: object) -> bool:
        RUNS.append("eq")
        return type(other) is type(self) and self.k == other.k  # type: ignore[attr-defined]

    def __hash__(self) -> int:
        RUNS.append("hash")
        return 7


class Compared(Pure):
    """Hashes like ``Pure``; what it is compared with is noted in the object."""

    __hash__ = Pure.__hash__

    def __eq__(self, other: object) -> bool:
        self.last = type(other).__name__
        return self.k == getattr(other, "k", None)


class Called(Pure):
    __eq__ = Pure.__eq__

    def __hash__(self) -> int:
        return self.number()

    def number(self) -> int:
        RUNS.append("number")
        return 3


class Shown(Pure):
    """Its attribute is a property that counts."""

    def __init__(self, k: int) -> None:
        self.inner = k

    @property
    def k(self) -> int:  # type: ignore[override]
        RUNS.append("k")
        return self.inner


class Unhashable(Pure):
    __hash__ = None  # type: ignore[assignment]


class Raising(Pure):
    def __hash__(self) -> int:
        RUNS.append("raise")
        raise KeyError("no hash")


class Text(str):
    """Finds the same entries as the plain text in lower case."""

    def __eq__(self, other: object) -> bool:
        RUNS.append("text")
        return str.__eq__(self.lower(), other)

    def __hash__(self) -> int:
        RUNS.append("hash of a text")
        return str.__hash__(self.lower())


class Number(int):
    def __hash__(self) -> int:
        RUNS.append("hash of a number")
        return int.__hash__(self)

    __eq__ = int.__eq__


@dataclasses.dataclass(frozen=True)
class Frozen:
    k: int


@dataclasses.dataclass(frozen=True)
class Holding:
    k: Any


class Couple(NamedTuple):
    a: Any
    b: int = 1


class Colour(enum.Enum):
    RED = 1
    BLUE = 2
    GREEN = 3


class Plain:
    """By identity."""

    def __init__(self, k: int) -> None:
        self.k = k

    def __repr__(self) -> str:
        return f"Plain({self.k})"


KEYS: dict[str, Callable[[int], Any]] = {
    "plain": Plain,
    "pure": Pure,
    "constant": Constant,
    "counting": Counting,
    "compared": Compared,
    "called": Called,
    "property": Shown,
    "unhashable": Unhashable,
    "raising": Raising,
    "text": lambda k: Text("ABC"[k - 1]),
    "plain text": lambda k: "abc"[k - 1],
    "number": Number,
    "plain number": lambda k: k,
    "dataclass": Frozen,
    "dataclass of counting": lambda k: Holding(Counting(k)),
    "tuple": lambda k: (Counting(k), 1),
    "named tuple": lambda k: Couple(Counting(k)),
    "frozenset": lambda k: frozenset({Counting(k)}),
    "enum": Colour,
    "list": lambda k: [k],
    "slice": slice,
    "tuple of a list": lambda k: ([k],),
    "method": lambda k: Counting(k).__repr__,
    "partial": lambda k: functools.partial(max, k),
    "tensor": lambda k: torch.tensor(k),
}


class Store:
    """A dict, a set, and the keys that a region asks them for."""

    def __init__(self, make: Callable[[int], Any]) -> None:
        self.make = make
        first = make(1)
        self.held = first
        self.keys = {"same": first, "equal": make(1), "missing": make(3)}
        self.d: dict[Any, Any] = {"a": 4.0}
        self.s: set[Any] = {"a"}
        for key, value in ((make(2), 2.0), (first, 3.0)):
            try:
                self.d[key] = value
                self.s.add(key)
            except (TypeError, KeyError):
                pass  # it cannot be hashed: the dict is asked for it all the same
        self.other: dict[Any, Any] = {}
        self.counts: collections.Counter[Any] = collections.Counter()
        self.groups: Any = collections.defaultdict(list)
        self.order: Any = collections.OrderedDict(self.d)
        self.kept = functools.lru_cache(lambda key: 2.0)
        self.chain = collections.ChainMap({}, self.d)
        self.proxy = types.MappingProxyType(self.d)
        self.list = [make(2), first]
        self.made: Any = None

    def shown(self) -> str:
        return repr(
            [
                list(map(_name, v))
                for v in (
                    self.d,
                    self.d.values(),
                    sorted(map(_name, self.s)),
                    self.other,
                    self.counts,
                    self.groups,
                    self.order,
                    self.list,
                )
            ]
        ) + repr(vars(self.held) if hasattr(self.held, "__dict__") else "")


def _name(v: Any) -> str:
    return f"{type(v).__name__} {v.inner}" if type(v) is Shown else repr(v) if not callable(v) else type(v).__name__


def _deleted(s: Store, k: Any) -> Any:
    del s.d[k]


def _matched(s: Store, k: Any) -> Any:
    match s.d:
        case {"a": v}:
            return v


def _counted(s: Store, k: Any) -> Any:
    s.counts[k] += 1


def _two_written(s: Store, k: Any) -> Any:
    made: dict[Any, int] = {}
    made[s.held] = 1
    made[k] = 2
    return len(made), made.setdefault(k, 4)


def _written_then_read(s: Store, k: Any) -> Any:
    s.other["a"] = s.other.get("a", 0.0)
    s.other[k] = 3.0
    read = s.other["a"] + len(s.other)
    s.other["a"] += 1
    return read


def _two_added(s: Store, k: Any) -> Any:
    seen: set[Any] = set()
    seen.add(s.held)
    return k in seen


def _two_grouped(s: Store, k: Any) -> Any:
    made: Any = collections.defaultdict(list)
    for key in (s.held, k):
        made[key].append(1)
    return sorted(map(len, made.values()))


def _kept(s: Store, name: str, value: Any) -> Any:
    setattr(s, name, value)
    return len(value)


OPS: dict[str, Callable[[Store, Any], Any]] = {
    "get": lambda s, k: s.d.get(k, 9.0),
    "item": lambda s, k: s.d[k],
    "in": lambda s, k: k in s.d,
    "in set": lambda s, k: k in s.s,
    "in keys": lambda s, k: k in s.d.keys(),
    "in items": lambda s, k: (k, 3.0) in s.d.items(),
    "in list": lambda s, k: (k in s.list, s.list.count(k)),
    "set item": lambda s, k: s.d.__setitem__(k, 5.0),
    "assign": lambda s, k: operator.setitem(s.d, k, 6.0),
    "other item": lambda s, k: s.other.__setitem__(k, 5.0),
    "setdefault": lambda s, k: s.d.setdefault(k, 8.0),
    "pop": lambda s, k: s.d.pop(k, 8.0),
    "delete": _deleted,
    "update": lambda s, k: s.d.update({k: 1.0}),
    "update other": lambda s, k: s.other.update(s.d),
    "merged": lambda s, k: len(s.d | {k: 1.0}),
    "spread": lambda s, k: len({**s.d, k: 1.0}),
    "display": lambda s, k: {k: 7.0}[k],
    "displayed set": lambda s, k: len({k, k}),
    "copied": lambda s, k: dict(s.d)[k],
    "deep copied": lambda s, k: len(copy.deepcopy(s.d)),
    "iterated": lambda s, k: sum(s.d[key] for key in s.d),
    "values": lambda s, k: sum(s.d.values()),
    "items": lambda s, k: [v for key, v in s.d.items()],
    "keys equal": lambda s, k: s.d.keys() == {k},
    "dict equal": lambda s, k: s.d == {k: 3.0},
    "plain key": lambda s, k: s.d["a"],
    "plain key in a set": lambda s, k: "a" in s.s,
    "plain key set": lambda s, k: s.d.__setitem__("b", 1.0),
    "match": _matched,
    "add": lambda s, k: s.s.add(k),
    "discard": lambda s, k: s.s.discard(k),
    "remove": lambda s, k: s.s.remove(k),
    "union": lambda s, k: len(s.s | {k}),
    "intersection": lambda s, k: len(s.s & {k}),
    "difference": lambda s, k: len(s.s.difference([k])),
    "update set": lambda s, k: s.s.update([k]),
    "subset": lambda s, k: {k} <= s.s,
    "looped set": lambda s, k: sum(1 for _ in s.s),
    "frozen": lambda s, k: hash(frozenset([k])) == 0,
    "fromkeys": lambda s, k: dict.fromkeys([k], 1.0)[k],
    "set of list": lambda s, k: len(set(s.list)),
    "counter": lambda s, k: collections.Counter(s.list)[k],
    "counted": _counted,
    "group": lambda s, k: s.groups[k].append(1),
    "order": lambda s, k: s.order.move_to_end(k),
    "cached": lambda s, k: s.kept(k),
    "chain": lambda s, k: s.chain[k],
    "proxy": lambda s, k: s.proxy[k],
    "mapped": lambda s, k: list(map(s.d.get, [k, k])),
    "sorted": lambda s, k: len(sorted([k, k], key=s.d.__getitem__)),
    "itemgetter": lambda s, k: operator.itemgetter(k)(s.d),
    "contains": lambda s, k: operator.contains(s.d, k),
    "hash": lambda s, k: hash(k) == 0,
    "equal": lambda s, k: (k == s.held, k != s.held),
    "index": lambda s, k: s.list.index(k),
    "remove from list": lambda s, k: s.list.remove(k),
    "two displayed": lambda s, k: (len({s.held, k}), len({s.held: 1, k: 2})),
    "two in a dict": lambda s, k: {s.held: 1}.get(k),
    "two as items": lambda s, k: {s.held: 1}[k],
    "two written": _two_written,
    "two added": _two_added,
    "written, then read": _written_then_read,
    "two of a list": lambda s, k: (len(set([s.held, k])), len(frozenset((k, s.held)))),
    "two from keys": lambda s, k: len(dict.fromkeys([s.held, k])),
    "two counted": lambda s, k: len(collections.Counter([s.held, k])),
    "two zipped": lambda s, k: len(dict(zip([s.held, k], "ab", strict=True))),
    "two pairs": lambda s, k: len(dict([(s.held, 1), (k, 2)])),
    "two comprehended": lambda s, k: len({key for key in (s.held, k)}) + len({key: 1 for key in (s.held, k)}),
    "two united": lambda s, k: (len({s.held} | {k}), {s.held} == {k}, len({s.held: 1} | {k: 2})),
    "two popped": lambda s, k: {s.held: 3}.pop(k, 4),
    "two mapped": lambda s, k: list(map({s.held: 3}.get, [k])),
    "two in keys": lambda s, k: k in {s.held: 3}.keys(),
    "two compared": lambda s, k: (k in [s.held], (k, 1) in [(s.held, 1)], [k] == [s.held], (s.held, 2) == (k, 2)),
    "two grouped": _two_grouped,
    "two tuples": lambda s, k: len({(s.held, 1), (k, 1)}),
    "is": lambda s, k: k is s.held,
    "id": lambda s, k: id(k) == id(s.held),
    "kept dict": lambda s, k: _kept(s, "made", {k: 1.0}),
    "kept set": lambda s, k: _kept(s, "made", {k}),
    "kept comprehension": lambda s, k: _kept(s, "made", {key: 1.0 for key in s.list}),
    "kept tuple": lambda s, k: _kept(s, "made", ({k: 1.0}, 1)),
}  # fmt: skip


def _life(kind: str, which: str, op: str, compiled: bool, calls: int = 7) -> list[Any]:
    store = Store(KEYS[kind])
    operation = OPS[op]

    def region(x: torch.Tensor) -> Any:
        try:
            value = operation(store, store.keys[which])
        except (TypeError, KeyError, ValueError) as error:
            value = type(error).__name__, str(error)[:40] if isinstance(error, TypeError) else ""
        return x + 1, value

    target = magpy_core.compile(region, backend="eager") if compiled else region
    seen = []
    for call in range(calls):
        if call == 3:
            store.d["a"] = 5.0
            store.keys[which] = store.make(2)
        if call == 4:
            store.keys[which] = store.held
        if call == 5:
            store.keys[which] = store.make(1)
        if call == 6:
            store.keys[which] = "a"
        RUNS.clear()
        y, value = target(torch.ones(1))
        ran = list(RUNS)
        seen.append((y.item(), repr(value), ran, store.shown()))
        store.made = None
    return seen


def keyed(kind: str, which: str, op: str) -> str | None:
    """How a region that does this with such a key differs from eager mode over some calls; None where it doesn't."""
    return difference(_life, kind, which, op)


FAMILY = Family.product(keyed, kind=KEYS, which=("same", "equal", "missing"), op=OPS)


if __name__ == "__main__":
    raise SystemExit(main(FAMILY))
