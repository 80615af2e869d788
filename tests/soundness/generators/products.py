"""Products: every way to reach an object times every kind of object, every container times everything that consumes it.

A corpus program shows one idiom; the mistakes that stay are in pairs nobody thought of (a dict's values under ``sum`` with
numbers that vary). Each product is called on two worlds, eager and compiled, with changes between the calls; results and the
object afterwards must agree. `python -m tests.soundness.generators.products` runs all of them. Key functions: reached,
consumed.
"""

# ruff: noqa: B905, RUF015, RUF017  (each idiom as programs write it)
from __future__ import annotations

import array
import bisect
import collections
import contextvars
import copy
import functools
import gc
import heapq
import itertools
import json
import math
import operator
import pickle
import queue
import statistics
import struct
import threading
import types
import weakref
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import torch

import magpy_core
from tests.soundness.harness.families import Family, main

"""Product, number of the call, what eager showed, what the compiled region showed."""


# --- reached: how x kind ---------------------------------------------------------------------------------------------


class Pair(NamedTuple):
    x: Any


class Plain:
    def __init__(self) -> None:
        self.a: Any = 1.0
        self.n = 0


class Slotted:
    __slots__ = ("a", "n")

    def __init__(self) -> None:
        self.a: Any = 1.0
        self.n = 0


class OwnDict(dict):  # type: ignore[type-arg]
    pass


class OwnList(list):  # type: ignore[type-arg]
    pass


class Surroundings:
    """One object ``d``, and all that leads to it."""

    def __init__(self, make: Callable[[], Any]) -> None:
        d = self.d = make()
        self.l = [d]
        self.m = {"k": d}
        self.dq = collections.deque([d])
        self.q: Any = queue.SimpleQueue()
        self.q.put(d)
        self.tl = threading.local()
        self.tl.d = d
        self.cv: Any = contextvars.ContextVar("v")
        self.cv.set(d)
        self.t = (d,)
        self.mp = types.MappingProxyType(self.m)
        self.ns = types.SimpleNamespace(d=d)
        self.part = functools.partial(lambda d, x: d, d)
        self.od = collections.OrderedDict(k=d)
        self.cm = collections.ChainMap(self.m)
        self.cached = functools.lru_cache(lambda: self.d)
        self.err = ValueError(d)
        self.cycle = itertools.cycle([d])
        self.repeat = itertools.repeat(d)
        self.generator = self._generate()
        self.dd = collections.defaultdict(dict, k=d)
        self.item = operator.itemgetter("k")
        self.ud = collections.UserDict(k=d)
        self.cell = lambda: d
        self.fn = lambda d=d: d
        self.kw = lambda *, d=d: d
        self.weak_keys: Any = weakref.WeakKeyDictionary()
        self.weak_keys[self.fn] = d
        self.nested = [[d]]
        self.np = np.empty(2, dtype=object)
        self.np[0] = self.np[1] = d
        self.np0 = np.empty((), dtype=object)
        self.np0[()] = d

    def _generate(self) -> Iterator[Any]:
        while True:
            yield self.d


def _updated(s: Surroundings) -> Any:
    m: dict[str, Any] = {}
    m.update(s.m)
    return m["k"]


def _extended(s: Surroundings) -> Any:
    values: list[Any] = []
    values.extend(s.l)
    return values[0]


def _local(s: Surroundings) -> Any:
    d = s.d
    return locals()["d"]


def _looped(s: Surroundings) -> Any:
    for d in s.l:
        return d


def _raised(s: Surroundings) -> Any:
    try:
        raise s.err
    except ValueError as error:
        return error.args[0]


def _caught(s: Surroundings) -> Any:
    try:
        raise KeyError(s.d)
    except KeyError as error:
        return error.args[0]


def _matched(s: Surroundings) -> Any:
    match s.l:
        case [d]:
            return d


def _queued(s: Surroundings) -> Any:
    d = s.q.get()
    s.q.put(d)
    return d


HOW: dict[str, Callable[[Any], Any]] = {
    "attribute": lambda s: s.d,
    "getattr": lambda s: getattr(s, "d"),  # noqa: B009
    "getattr_default": lambda s: getattr(s, "d", None),
    "object_getattribute": lambda s: object.__getattribute__(s, "d"),
    "instance_dict": lambda s: s.__dict__["d"],
    "vars": lambda s: vars(s)["d"],
    "attrgetter": lambda s: operator.attrgetter("d")(s),
    "namespace": lambda s: s.ns.d,
    "namespace_from_vars": lambda s: types.SimpleNamespace(**vars(s.ns)).d,
    "copied_object": lambda s: copy.copy(s.ns).d,
    "locals": _local,
    "first_of_list": lambda s: s.l[0],
    "last_of_tuple": lambda s: s.t[-1],
    "list_getitem": lambda s: s.l.__getitem__(0),
    "operator_getitem": lambda s: operator.getitem(s.l, 0),
    "slice": lambda s: s.l[:][0],
    "list_copy": lambda s: s.l.copy()[0],
    "copied_list": lambda s: copy.copy(s.l)[0],
    "list_times": lambda s: (s.l * 2)[1],
    "list_of_list": lambda s: list(s.l).pop(),
    "tuple_of_list": lambda s: tuple(s.l)[0],
    "unpacked": lambda s: [*s.l][0],
    "comprehension": lambda s: [d for d in s.l][0],
    "looped": _looped,
    "matched": _matched,
    "extended": _extended,
    "concat": lambda s: operator.concat(s.l, [])[0],
    "sum_of_lists": lambda s: sum(s.nested, [])[0],
    "star_arguments": lambda s: (lambda *a: a)(*s.l)[0],
    "next": lambda s: next(iter(s.l)),
    "reversed": lambda s: next(reversed(s.l)),
    "enumerate": lambda s: next(enumerate(s.l))[1],
    "zip": lambda s: next(zip(s.l))[0],
    "map": lambda s: next(map(lambda d: d, s.l)),
    "filter": lambda s: next(filter(lambda d: True, s.l)),
    "sorted": lambda s: sorted(s.l, key=id)[0],
    "max": lambda s: max(s.l, key=id),
    "min_of_two": lambda s: min(s.d, s.d, key=id),
    "reduce": lambda s: functools.reduce(lambda a, b: b, s.l, None),
    "partial": lambda s: s.part(0),
    "partial_args": lambda s: s.part.args[0],
    "methodcaller": lambda s: operator.methodcaller("get", "k")(s.m),
    "cached": lambda s: s.cached(),
    "closure": lambda s: s.cell(),
    "defaults": lambda s: s.fn(),
    "defaults_tuple": lambda s: s.fn.__defaults__[0],
    "keyword_defaults": lambda s: s.kw.__kwdefaults__["d"],
    "dict_item": lambda s: s.m["k"],
    "dict_get": lambda s: s.m.get("k"),
    "setdefault": lambda s: s.m.setdefault("k", 3),
    "dict_values": lambda s: list(s.m.values())[0],
    "dict_items": lambda s: list(s.m.items())[0][1],
    "next_value": lambda s: next(iter(s.m.values())),
    "dict_copy": lambda s: dict(s.m)["k"],
    "dict_merge": lambda s: (s.m | {})["k"],
    "dict_update": _updated,
    "fromkeys": lambda s: dict.fromkeys("x", s.d)["x"],
    "mapping_proxy": lambda s: s.mp["k"],
    "ordered": lambda s: s.od["k"],
    "ordered_values": lambda s: next(iter(s.od.values())),
    "chain_map": lambda s: s.cm["k"],
    "default_dict": lambda s: s.dd["k"],
    "user_dict": lambda s: s.ud["k"],
    "itemgetter": lambda s: s.item(s.m),
    "weak_keys": lambda s: s.weak_keys[s.fn],
    "named_tuple": lambda s: Pair(s.d).x,
    "deque_item": lambda s: s.dq[0],
    "deque_copy": lambda s: s.dq.copy()[0],
    "deque_pop": lambda s: collections.deque(s.dq).pop(),
    "queue": _queued,
    "thread_local": lambda s: s.tl.d,
    "context_variable": lambda s: s.cv.get(),
    "copied_context": lambda s: contextvars.copy_context()[s.cv],
    "exception_args": lambda s: s.err.args[0],
    "raised": _raised,
    "caught": _caught,
    "cycle": lambda s: next(s.cycle),
    "repeat": lambda s: next(s.repeat),
    "generator": lambda s: next(s.generator),
    "chain": lambda s: next(itertools.chain(s.l)),
    "islice": lambda s: next(itertools.islice(s.l, 1)),
    "groupby": lambda s: next(next(iter(itertools.groupby(s.l, key=id)))[1]),
    "accumulate": lambda s: next(itertools.accumulate(s.l)),
    "product": lambda s: next(itertools.product(s.l))[0],
    "permutations": lambda s: next(itertools.permutations(s.l))[0],
    "zip_longest": lambda s: next(itertools.zip_longest(s.l))[0],
    "tee": lambda s: next(itertools.tee(s.l)[0]),
    "starmap": lambda s: next(itertools.starmap(lambda d: d, [(s.d,)])),
    "takewhile": lambda s: next(itertools.takewhile(lambda d: True, s.l)),
    "compress": lambda s: next(itertools.compress(s.l, [1])),
    "pairwise": lambda s: next(itertools.pairwise(s.l * 2))[0],
    "nsmallest": lambda s: heapq.nsmallest(1, s.l, key=id)[0],
    "heappop": lambda s: heapq.heappop(list(s.l)),
    "referents": lambda s: gc.get_referents(s.t)[0],
    "numpy_item": lambda s: s.np[0],
    "numpy_scalar": lambda s: s.np0.item(),
    "numpy_tolist": lambda s: s.np.tolist()[0],
    "numpy_flat": lambda s: next(s.np.flat),
    "shallow": lambda s: copy.copy(s.d),
    "deep": lambda s: copy.deepcopy(s.d),
}


class Kind(NamedTuple):
    """``read`` gives a factor, ``write`` is the region's own change, ``change`` one between the calls."""

    make: Callable[[], Any]
    read: Callable[[Any], Any]
    write: Callable[[Any], Any]
    change: Callable[[Any, float], Any]
    show: Callable[[Any], str] = repr


WHAT = {
    "scalars": Kind(
        lambda: {"a": 1.0}, lambda d: d["a"], lambda d: d.update(n=d.get("n", 0.0) + 1.0), lambda d, v: d.update(a=v)
    ),
    "lists": Kind(
        lambda: {"a": [1.0]},
        lambda d: d["a"][0],
        lambda d: d["a"].append(len(d["a"])),
        lambda d, v: d["a"].__setitem__(0, v),
    ),
    "list": Kind(lambda: [1.0], lambda d: d[0], lambda d: d.append(len(d)), lambda d, v: d.__setitem__(0, v)),
    "object": Kind(
        Plain, lambda d: d.a, lambda d: setattr(d, "n", d.n + 1), lambda d, v: setattr(d, "a", v), lambda d: repr(vars(d))
    ),
    "slots": Kind(
        Slotted,
        lambda d: d.a,
        lambda d: setattr(d, "n", d.n + 1),
        lambda d, v: setattr(d, "a", v),
        lambda d: repr((d.a, d.n)),
    ),
    "own_dict": Kind(
        lambda: OwnDict(a=1.0), lambda d: d["a"], lambda d: d.update(n=d.get("n", 0) + 1), lambda d, v: d.update(a=v)
    ),
    "own_list": Kind(
        lambda: OwnList([1.0]), lambda d: d[-1], lambda d: d.insert(0, len(d)), lambda d, v: d.__setitem__(-1, v)
    ),
    "deque": Kind(
        lambda: collections.deque([1.0]), lambda d: d[0], lambda d: d.append(len(d)), lambda d, v: d.__setitem__(0, v)
    ),
    "ordered": Kind(
        lambda: collections.OrderedDict(a=1.0),
        lambda d: d["a"],
        lambda d: d.move_to_end("a"),
        lambda d, v: d.update(a=v, b=v),
    ),
    "tensor": Kind(lambda: torch.ones(1), lambda d: d.sum(), lambda d: d.add_(1), lambda d, v: d.fill_(v)),
    "text": Kind(
        lambda: {"a": "1.0"},
        lambda d: float(d["a"]),
        lambda d: d.update(n=d.get("n", "") + "x"),
        lambda d, v: d.update(a=str(v)),
    ),
    "large": Kind(
        lambda: {"a": 1000},
        lambda d: d["a"] + 2**40 - 2**40,
        lambda d: d.update(n=d.get("n", 2**40) + 1),
        lambda d, v: d.update(a=int(v) * 1000),
    ),
    "truth": Kind(
        lambda: {"a": True},
        lambda d: 2.0 if d["a"] else 3.0,
        lambda d: d.update(n=not d.get("n", True)),
        lambda d, v: d.update(a=v > 4),
    ),
    "none": Kind(
        lambda: {"a": None},
        lambda d: 2.0 if d["a"] is None else d["a"],
        lambda d: d.update(n=None),
        lambda d, v: d.update(a=None if v < 4 else v),
    ),
}


def reached(how: str, what: str) -> str | None:
    """A region that reads and writes an object reached in one way. None: no call showed a difference."""
    get, kind = HOW[how], WHAT[what]

    def region(s: Surroundings, x: torch.Tensor) -> Any:
        d = get(s)
        factor = kind.read(d)
        kind.write(d)
        return x * factor, d is s.d

    def call(target: Callable[..., Any], s: Surroundings) -> Any:
        try:
            y, same = target(s, x)
        except Exception as error:  # any of the program's own; the other world must raise it too
            return type(error).__name__, str(error), kind.show(s.d)
        return y.tolist(), same, kind.show(s.d)

    gc.freeze()
    ours, theirs = Surroundings(kind.make), Surroundings(kind.make)
    gc.collect()  # what holds only numbers and text is untracked from now on: of these two, everything else is older
    gc.unfreeze()
    compiled = magpy_core.compile(region, backend="eager")
    x = torch.ones(2)
    for number, value in enumerate((None, None, 2.0, 7.0, None, 7.0, 3.0)):
        if value is not None:
            kind.change(ours.d, value)
            kind.change(theirs.d, value)
        got, want = call(compiled, ours), call(region, theirs)
        if got != want:
            return f"{how}, {what}, call {number}: {want} expected, {got} found"
    return None


# --- consumed: consumer x container ----------------------------------------------------------------------------------


class Numbers:
    """Iterates by ``__iter__`` of a native iterator."""

    def __init__(self, v: Any) -> None:
        self.v = v

    def __iter__(self) -> Iterator[Any]:
        return iter((self.v, self.v + 1))


class Generated(Numbers):
    def __iter__(self) -> Iterator[Any]:
        yield self.v
        yield self.v + 1


class Couple(NamedTuple):
    a: Any
    b: Any


CONTAINERS: dict[str, Callable[[Any], Any]] = {
    "list": lambda v: [v, v + 1],
    "tuple": lambda v: (v, v + 1),
    "dict": lambda v: {"a": v, "b": v + 1},
    "deque": lambda v: collections.deque([v, v + 1]),
    "ordered": lambda v: collections.OrderedDict(a=v, b=v + 1),
    "named_tuple": lambda v: Couple(v, v + 1),
    "namespace": lambda v: types.SimpleNamespace(a=v, b=v + 1),
    "proxy": lambda v: types.MappingProxyType({"a": v, "b": v + 1}),
    "default_dict": lambda v: collections.defaultdict(float, a=v, b=v + 1),
    "set": lambda v: {v, v + 1},
    "frozenset": lambda v: frozenset({v, v + 1}),
    "nested": lambda v: [[v], [v + 1]],
    "counter": lambda v: collections.Counter({"a": v, "b": v + 1}),
    "chain_map": lambda v: collections.ChainMap({"a": v}, {"b": v + 1}),
    "user_dict": lambda v: collections.UserDict(a=v, b=v + 1),
    "user_list": lambda v: collections.UserList([v, v + 1]),
    "iterable": Numbers,
    "generating": Generated,
}


def _of(c: Any) -> Any:
    """The numbers of a container, as a program would ask for them."""
    if isinstance(c, types.SimpleNamespace):
        return vars(c).values()
    if isinstance(c, list) and isinstance(c[0], list):
        return (z for y in c for z in y)
    return c.values() if hasattr(c, "values") else c


def _unpack(values: Any) -> Any:
    first, *rest = values
    return first + rest[0]


def _stored(given: Any, store: Callable[[Any, Any], Any]) -> Any:
    held = [0.5, 0.25, 0.125]
    store(held, given)
    return sum(value * (place + 1) for place, value in enumerate(held))


def _by_statement(held: Any, given: Any) -> None:
    held[0:1] = given


def _in_steps(held: Any, given: Any) -> None:
    held[::2] = given


def _starred(given: Any) -> Any:
    _, *rest = given
    return rest[0]


def _matched(given: Any) -> Any:
    match given:
        case [first, *_] if first > 3:
            return first * 2
        case [_, second]:
            return second
        case _:
            return 0.5


def _updated(given: Any) -> Any:
    held = {"a": 0.0}
    held.update(given)
    return held["a"]


def _left(given: Any) -> Any:
    held = collections.deque([0.5])
    held.extendleft(given)
    return held


def _rotated(given: Any) -> Any:
    held = collections.deque(given)
    held.rotate(1)
    return held[0]


CONSUMERS: dict[str, Callable[[Any], Any]] = {
    "sum": lambda c: sum(_of(c)),
    "max": lambda c: max(_of(c)),
    "min": lambda c: min(_of(c)),
    "fsum": lambda c: math.fsum(_of(c)),
    "prod": lambda c: math.prod(_of(c)),
    "hypot": lambda c: math.hypot(*_of(c)),
    "dist": lambda c: math.dist(tuple(_of(c)), (0.0, 0.0)),
    "mean": lambda c: statistics.mean(_of(c)),
    "sorted": lambda c: sorted(_of(c))[0],
    "list": lambda c: list(_of(c))[0],
    "tuple": lambda c: tuple(_of(c))[-1],
    "set": lambda c: sum(set(_of(c))),
    "deque": lambda c: collections.deque(_of(c))[0],
    "array": lambda c: array.array("d", _of(c))[0],
    "tensor": lambda c: torch.tensor(list(_of(c))).sum(),
    "next": lambda c: next(iter(_of(c))),
    "comprehension": lambda c: [e for e in _of(c)][0],
    "starred": lambda c: max(*_of(c)),
    "unpacked": lambda c: _unpack(_of(c)),
    "map_native": lambda c: next(map(float, _of(c))),
    "map": lambda c: list(map(lambda e: e * 2, _of(c)))[0],
    "zip": lambda c: next(zip(_of(c), _of(c)))[1],
    "enumerate": lambda c: list(enumerate(_of(c)))[0][1],
    "filter": lambda c: sum(filter(None, _of(c))),
    "reduce": lambda c: functools.reduce(operator.add, _of(c)),
    "accumulate": lambda c: list(itertools.accumulate(_of(c)))[-1],
    "chain": lambda c: list(itertools.chain(_of(c), _of(c)))[0],
    "pairwise": lambda c: next(itertools.pairwise(_of(c)))[1],
    "heap": lambda c: heapq.nlargest(1, _of(c))[0],
    "bisect": lambda c: float(bisect.bisect(sorted(_of(c)), 3.0)),
    "any": lambda c: 1.0 if any(e > 3 for e in _of(c)) else 2.0,
    "in": lambda c: 1.0 if 3.0 in _of(c) else 2.0,
    "index": lambda c: list(_of(c)).index(3.0) if 3.0 in list(_of(c)) else 5.0,
    "count": lambda c: list(_of(c)).count(3.0) + 1.0,
    "equal": lambda c: 1.0 if list(_of(c)) == [3.0, 4.0] else 2.0,
    "less": lambda c: 1.0 if tuple(_of(c)) < (3.0, 4.0) else 2.0,
    "hash": lambda c: float(hash(tuple(_of(c))) % 7),
    "text": lambda c: float(str(sum(_of(c)))),
    "format": lambda c: float("".join(f"{e:.0f}" for e in _of(c))),
    "repr": lambda c: float(len(repr(list(_of(c))))),
    "json": lambda c: json.loads(json.dumps(list(_of(c))))[0],
    "dict_of_zip": lambda c: dict(zip("ab", _of(c)))["a"],
    "copied": lambda c: sum(list(_of(c)).copy()),
    "sliced": lambda c: sum(list(_of(c))[:1]),
    "repeated": lambda c: sum(list(_of(c)) * 2),
    "joined": lambda c: sum([*list(_of(c)), 1.0]),
    "reversed": lambda c: list(_of(c))[::-1][0],
    "operator": lambda c: operator.add(*_of(c)),
    "round": lambda c: float(round(sum(_of(c)))),
    "divmod": lambda c: divmod(*_of(c))[1],
    "stored_slice": lambda c: _stored(_of(c), lambda held, given: held.__setitem__(slice(None), given)),
    "stored_by_operator": lambda c: _stored(_of(c), lambda held, given: operator.setitem(held, slice(1, 2), given)),
    "stored_by_class": lambda c: _stored(_of(c), lambda held, given: list.__setitem__(held, slice(2, 2), given)),
    "stored_by_statement": lambda c: _stored(_of(c), _by_statement),
    "stored_in_steps": lambda c: _stored(_of(c), _in_steps),
    "extended": lambda c: _stored(_of(c), list.extend),
    "added": lambda c: _stored(_of(c), operator.iadd),
    "concatenated": lambda c: _stored(list(_of(c)), lambda held, given: held.extend(operator.concat(held, given))),
    "initialized": lambda c: _stored(_of(c), list.__init__),
    "starred_target": lambda c: _starred(_of(c)),
    "matched": lambda c: _matched(list(_of(c))),
    "called": lambda c: (lambda *given: given[1])(*_of(c)),
    "called_by_name": lambda c: (lambda a=0.0, b=0.0: a - 2 * b)(**dict(zip("ab", _of(c)))),
    "updated": lambda c: _updated(dict(zip("ab", _of(c)))),
    "merged": lambda c: ({"a": 0.0} | dict(zip("ab", _of(c))))["a"],
    "unpacked_dict": lambda c: {**dict(zip("ab", _of(c)))}["b"],
    "from_keys": lambda c: sum(dict.fromkeys(_of(c))),
    "counted": lambda c: sum(collections.Counter(_of(c))),
    "chained": lambda c: sum(itertools.chain.from_iterable([_of(c), _of(c)])),
    "transposed": lambda c: list(zip(*[_of(c), _of(c)]))[1][0],
    "percent": lambda c: float("%.0f%.0f" % tuple(_of(c))),  # noqa: UP031
    "format_method": lambda c: float("{:.0f}{:.0f}".format(*_of(c))),
    "copy": lambda c: sum(copy.copy(list(_of(c)))),
    "deep_copy": lambda c: sum(copy.deepcopy(list(_of(c)))),
    "pickled": lambda c: sum(pickle.loads(pickle.dumps(list(_of(c))))),
    "packed": lambda c: struct.unpack("2d", struct.pack("2d", *_of(c)))[1],
    "numpy": lambda c: float(np.array(list(_of(c))).sum()),
    "range": lambda c: float(sum(range(*map(int, _of(c))))),
    "appended_left": lambda c: _stored(_of(c), lambda held, given: held.extend(_left(given))),
    "rotated": lambda c: _rotated(_of(c)),
}


def consumed(consumer: str, container: str, number: str) -> str | None:
    """A region that takes a number out of a container whose numbers vary. None: no call showed a difference."""
    make, take, of = CONTAINERS[container], CONSUMERS[consumer], {"float": float, "int": int}[number]

    def region(c: Any, x: torch.Tensor) -> torch.Tensor:
        return x * take(c)

    def call(target: Callable[..., Any], value: Any) -> Any:
        try:
            return target(make(value), x).tolist()
        except Exception as error:  # any of the program's own; the other world must raise it too
            return type(error).__name__, str(error)

    compiled = magpy_core.compile(region, backend="eager")
    x = torch.ones(2)
    for call_number, value in enumerate((1, 2, 7, 3, 9, 3)):
        got, want = call(compiled, of(value)), call(region, of(value))
        if got != want:
            return f"{consumer}, {container}, {number}, call {call_number}: {want} expected, {got} found"
    return None


REACHED = Family.product(reached, how=HOW, what=WHAT)
CONSUMED = Family.product(consumed, consumer=CONSUMERS, container=CONTAINERS, number=("float", "int"))

if __name__ == "__main__":
    raise SystemExit(main(REACHED, CONSUMED))
