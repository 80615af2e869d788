"""Numbers of data: every way to a Python number out of a tensor times everything Python does with a number.

Such a number is a value of the graph, not a constant: what Python decides by it must be guarded, what it computes from it
must be computed at every call. The data change sign, become zero, large, NaN and infinite between the calls.
`python -m tests.soundness.generators.numbers_of_data`. Key function: counted.
"""

# ruff: noqa: RUF015, UP031, UP032  (each idiom as programs write it)
from __future__ import annotations

import bisect
import cmath
import collections
import contextlib
import copy
import dataclasses
import datetime
import decimal
import enum
import fractions
import functools
import heapq
import io
import itertools
import json
import math
import numbers
import operator
import pickle
import random
import statistics
import string
import struct
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch

import magpy_core
from tests.soundness.harness.families import Family, first_difference, main


class Data:
    """What one call is given: floats ``x``, whole numbers ``i``, truths ``b``, each of four elements."""

    def __init__(self, first: float, whole: int, rest: tuple[float, ...] = (0.5, -1.5, 2.0)) -> None:
        self.x = torch.tensor([first, *rest])
        self.i = torch.tensor([whole, 3, 0, -2])
        self.b = self.x > 0


CALLS = [
    Data(1.5, 2), Data(1.5, 2), Data(2.5, 3), Data(-1.5, -2), Data(0.0, 0), Data(1.0, 1), Data(300.0, 70), Data(math.nan, 5),
    Data(math.inf, 2), Data(-0.0, 2, (-1.0, -1.0, -1.0)), Data(1.5, 2),
]  # fmt: skip

SOURCES: dict[str, Callable[[Data], Any]] = {
    "item": lambda d: d.x[0].item(),
    "sum": lambda d: d.x.sum().item(),
    "float": lambda d: float(d.x[0] * 2),
    "int item": lambda d: d.i[0].item(),
    "int": lambda d: int(d.i[0] + 1),
    "int of half": lambda d: int(d.x.nan_to_num(3.0, 4.0)[0] * 2),
    "index": lambda d: operator.index(d.i[0]),
    "bool": lambda d: d.b[0].item(),
    "truth": lambda d: bool(d.i[0]),
    "tolist": lambda d: d.i.tolist()[0],
    "float of list": lambda d: d.x.tolist()[0],
    "complex": lambda d: complex(d.x[0], d.x[1]),
    "complex item": lambda d: torch.complex(d.x[0], d.x[1]).item(),
    "count": lambda d: d.b.sum().item(),
    "rows of nonzero": lambda d: d.i.nonzero().shape[0],
    "len of masked": lambda d: len(d.x[d.b]),
    "numel of unique": lambda d: d.i.clamp(0, 2).unique().numel(),
    "numpy item": lambda d: d.x.numpy()[0].item(),
    "numpy scalar": lambda d: d.x.numpy()[0],
    "numpy sum": lambda d: d.i.numpy().sum(),
    "round": lambda d: round(d.x.nan_to_num(0.0, 9.0)[0].item()),
    "half": lambda d: d.x.half()[0].item(),
    "double": lambda d: d.x.double().mean().item(),
    "argmax": lambda d: d.x.argmax().item(),
    "min of list": lambda d: min(d.i.tolist()),
    "unpacked": lambda d: [*d.i][0].item(),
    "iterated": lambda d: next(v.item() for v in d.i),
}


@dataclasses.dataclass(order=True, frozen=True)
class Point:
    x: Any
    y: Any = 0


class Level(enum.IntEnum):
    LOW = 1
    MID = 2
    HIGH = 3


class Weights:
    """A number kept by properties and as an attribute."""

    def __init__(self) -> None:
        self.kept: Any = None
        self._limit: Any = 0
        self.table: dict[Any, Any] = {1: "one", 2: "two"}
        self.list = [1, 2, 3, 2.5]
        self.best = 0.0
        self.deque: collections.deque[Any] = collections.deque(maxlen=3)
        self.counter: collections.Counter[Any] = collections.Counter()
        self.default: collections.defaultdict[Any, list[Any]] = collections.defaultdict(list)

    @property
    def limit(self) -> Any:
        return self._limit

    @limit.setter
    def limit(self, value: Any) -> None:
        self._limit = max(value, 0)

    def shown(self) -> str:
        return repr([self.kept, self._limit, self.table, self.list, self.best, self.deque, self.counter, dict(self.default)])


def _kept(w: Weights, v: Any) -> None:
    w.kept = v


def _matched(v: Any) -> Any:
    match v:
        case 0:
            return "zero"
        case bool():
            return "truth"
        case int(n) if n > 2:
            return "many", n
        case float():
            return "float"
        case complex():
            return "complex"
        case _:
            return "else"


def _looped(v: Any) -> int:
    total = 0
    while total * total < v and total < 50:
        total += 1
    return total


def _raised(v: Any) -> Any:
    try:
        if v > 1:
            raise ValueError(v)
        return [1, 2][v]
    except ValueError as error:
        return error.args
    except (IndexError, TypeError) as error:
        return type(error)


def _written(w: Weights, v: Any) -> Any:
    w.list[0] = v
    w.list[1] += v
    w.table[v] = "new"
    return len(w.table), w.list.index(v)


def _defaulted(w: Weights, v: Any) -> Any:
    w.default[v].append(v)
    w.counter[v] += 1
    w.deque.append(v)
    return len(w.default)


def _best(w: Weights, v: Any) -> Any:
    improved = v > w.best
    if improved:
        w.best = v
    return improved


def _limited(w: Weights, v: Any) -> Any:
    w.limit = v
    return w.limit + 1


@functools.cache
def _cached(v: Any) -> Any:
    return v * 2


def _random(v: Any) -> Any:
    generator = random.Random(0)
    return generator.random() * v, generator.random()


def _generated(v: Any) -> list[Any]:
    def numbers_below() -> Any:
        n = 0
        while n < v and n < 20:
            yield n * v
            n += 1

    return list(numbers_below())


def _closed(v: Any) -> Any:
    held = v

    def inner(by: Any = v) -> Any:
        nonlocal held
        held += by
        return held

    return inner(), inner(1), held


def _sliced(w: Weights, v: Any) -> Any:
    return w.list[:v], w.list[v:], w.list[::v], "abcdefgh"[v:]


T = torch.arange(6.0)

USES: dict[str, Callable[[Weights, Any, Data], Any]] = {
    "itself": lambda w, v, d: v,
    "type": lambda w, v, d: (type(v), type(v) is int, isinstance(v, (int, np.integer)), isinstance(v, numbers.Real)),
    "arithmetic": lambda w, v, d: (v + 1, 1 - v, v * 2.5, v / 4, -v, +v, abs(v), v * True, v - v),
    "whole division": lambda w, v, d: (v // 2, v % 3, divmod(v, 2), -7 // (v or 1), 7 % (v or 1)),
    "by it": lambda w, v, d: (1 / v, 5 % v, 5 // v),
    "power": lambda w, v, d: (v**2, 2 ** (v % 5), v**0.5, v**-1 if v else None, pow(v, 3)),
    "power modulo": lambda w, v, d: pow(v, 3, 7),
    "bits": lambda w, v, d: (v & 3, v | 4, v ^ 1, ~v, v << 2, v >> 1),
    "shifted by it": lambda w, v, d: (1 << v, 4096 >> v),
    "in place": lambda w, v, d: functools.reduce(operator.iadd, [v, 1, 2.5]),
    "compared": lambda w, v, d: (v > 1, v <= 2, v == 2, v != 3, 1 < v < 3, v is None, v == "a"),
    "branch": lambda w, v, d: d.x + 1 if v > 1 else d.x - 1,
    "truth": lambda w, v, d: (not v, v and 5, v or 7, bool(v), 1 if v else 2),
    "loop": lambda w, v, d: _looped(v),
    "range": lambda w, v, d: [n * 2 for n in range(v)][:30],
    "range from": lambda w, v, d: list(range(v, v + 3)),
    "range member": lambda w, v, d: (v in range(3), v in range(0, 10, 2)),
    "index": lambda w, v, d: (w.list[v], (4, 5, 6)[v], "abc"[v]),
    "slice": lambda w, v, d: _sliced(w, v),
    "repeat": lambda w, v, d: (len([0] * (v % 10)), "ab" * (v % 4), (1,) * (v % 3)),
    "key": lambda w, v, d: (w.table.get(v), v in w.table, {1: "a", 2: "b"}.get(v, "none")),
    "member of list": lambda w, v, d: (v in w.list, v in (1, 2), v in {0, 2}, w.list.count(v)),
    "set of": lambda w, v, d: (len({v, 1, 2}), sorted({v, v + 1, 1} - {1})),
    "dict of": lambda w, v, d: {v: 1, v + 1: 2},
    "hash": lambda w, v, d: hash(v) == hash(2),
    "format": lambda w, v, d: (f"{v}", f"{v:.2f}", f"{v!r:>8}", str(v), format(v, "08.3f"), "%s" % v, "{:+}".format(v)),
    "format whole": lambda w, v, d: (f"{v:d}", "%d" % v, "%05d" % v, hex(v), bin(v), oct(v), chr(v % 90 + 33)),
    "join": lambda w, v, d: ",".join(map(str, [v, v + 1])),
    "template": lambda w, v, d: string.Template("v=$v").substitute(v=v),
    "conversions": lambda w, v, d: (int(v), float(v), bool(v), complex(v), str(v)),
    "float methods": lambda w, v, d: (float(v).is_integer(), float(v).hex(), float(v).as_integer_ratio()),
    "int methods": lambda w, v, d: (v.bit_length(), v.to_bytes(8, "big", signed=True), v.as_integer_ratio()),
    "parts": lambda w, v, d: (v.real, v.imag, v.conjugate()),
    "round": lambda w, v, d: (round(v), round(v, 1), round(v, -1)),
    "floor": lambda w, v, d: (math.floor(v), math.ceil(v), math.trunc(v)),
    "math": lambda w, v, d: (math.exp(min(v, 5)), math.sin(v), math.fabs(v), math.copysign(1, v), math.atan2(v, 2)),
    "math predicates": lambda w, v, d: (math.isnan(v), math.isinf(v), math.isfinite(v), math.isclose(v, 1.5)),
    "roots": lambda w, v, d: (math.sqrt(v), math.log(v), math.log2(v)),
    "whole math": lambda w, v, d: (math.gcd(v, 4), math.factorial(v % 6), math.comb(6, v % 6), math.isqrt(abs(v))),
    "sums": lambda w, v, d: (sum([v, 1, 2]), math.fsum([v, 0.1]), math.prod([v, 2]), math.hypot(v, 3), math.dist([v], [0])),
    "modf": lambda w, v, d: (math.modf(v), math.frexp(v), math.ldexp(v, 2), math.fmod(v, 3), math.remainder(v, 2)),
    "cmath": lambda w, v, d: (cmath.phase(v), cmath.exp(v / 1e3), cmath.isnan(v)),
    "min and max": lambda w, v, d: (min(v, 2), max(v, 1), min([v, 3, 1]), max(0, v, key=abs), max([v], default=1)),
    "sorted": lambda w, v, d: (sorted([3, v, 1]), sorted([v, 2], key=lambda n: -n), [3, v, 1].sort()),
    "bisect": lambda w, v, d: (bisect.bisect([1, 2, 3], v), bisect.bisect_left([1, 2, 3], v)),
    "heap": lambda w, v, d: (heapq.nsmallest(2, [v, 1, 5]), heapq.merge([v], [2]).__next__()),
    "accumulate": lambda w, v, d: list(itertools.accumulate([v, 1, 2], operator.mul)),
    "islice": lambda w, v, d: list(itertools.islice(range(100), v)),
    "takewhile": lambda w, v, d: list(itertools.takewhile(lambda n: n < v, range(20))),
    "filter": lambda w, v, d: list(filter(lambda n: n != v, [1, 2, 3])),
    "any": lambda w, v, d: (any(n == v for n in w.list), all(n < v for n in [0, 1])),
    "zip": lambda w, v, d: list(zip([v, 1], range(2), strict=True)),
    "enumerate": lambda w, v, d: list(enumerate("ab", v)),
    "count": lambda w, v, d: next(itertools.count(v, 2)),
    "fraction": lambda w, v, d: fractions.Fraction(v) + 1,
    "decimal": lambda w, v, d: decimal.Decimal(v) + 1,
    "statistics": lambda w, v, d: (statistics.mean([v, 1]), statistics.median([v, 1, 2])),
    "timedelta": lambda w, v, d: datetime.timedelta(seconds=v),
    "struct": lambda w, v, d: struct.pack("<d", v),
    "json": lambda w, v, d: json.dumps({"v": v}),
    "pickle": lambda w, v, d: pickle.loads(pickle.dumps([v])),
    "copy": lambda w, v, d: (copy.copy(v), copy.deepcopy({"v": [v]})),
    "enum": lambda w, v, d: (Level(v), Level(v) > Level.LOW),
    "enum compared": lambda w, v, d: (v == Level.MID, v < Level.HIGH, Level.LOW + v),
    "dataclass": lambda w, v, d: (Point(v), Point(v) < Point(2), Point(v) == Point(1.5)),
    "tuple compared": lambda w, v, d: ((v, 1) < (2, 0), [v] == [2], (v,) in [(2,), (3,)]),
    "match": lambda w, v, d: _matched(v),
    "raise": lambda w, v, d: _raised(v),
    "assert": lambda w, v, d: [None for _ in [0] if isinstance(v, object)],
    "kept": lambda w, v, d: _kept(w, v),
    "kept in containers": lambda w, v, d: _kept(w, {"v": [v, (v + 1,)], "w": {"u": v}}),
    "written": lambda w, v, d: _written(w, v),
    "defaultdict": lambda w, v, d: _defaulted(w, v),
    "best": lambda w, v, d: _best(w, v),
    "property": lambda w, v, d: _limited(w, v),
    "cached": lambda w, v, d: _cached(v),
    "random": lambda w, v, d: _random(v),
    "generator": lambda w, v, d: _generated(v),
    "closure": lambda w, v, d: _closed(v),
    "lambda default": lambda w, v, d: (lambda by=v: by * 2)(),
    "partial": lambda w, v, d: functools.partial(operator.sub, v)(1),
    "starred": lambda w, v, d: max(*[v, 1], *(2,)),
    "walrus": lambda w, v, d: [m for n in [v, 2] if (m := n * 2) > 2],
    "tensor of": lambda w, v, d: (torch.tensor(v), torch.tensor([v, 1]), torch.as_tensor(v).dtype, torch.full((2,), v)),
    "with tensor": lambda w, v, d: (d.x + v, v * d.x, d.x - v, v - d.i, d.x / (v + 3), d.i * v, d.b * v),
    "tensor compared": lambda w, v, d: (d.x > v, v == d.i, d.x.clamp(min=v), torch.where(d.b, d.x, v)),
    "tensor power": lambda w, v, d: (d.i.abs().double() ** (v % 3), 2 ** (d.x * 0 + v % 4)),
    "keyword": lambda w, v, d: (torch.add(d.x, d.x, alpha=v), torch.full_like(d.x, v), d.x.lerp(d.x + 1, v), d.x.fill_(v)),
    "tensor index": lambda w, v, d: (T[v], T[v % 6 - 6]),
    "tensor slice": lambda w, v, d: (T[:v], T[v:], T[1 : v + 1]),
    "tensor set": lambda w, v, d: (operator.setitem(d.x, 0, v), d.x),
    "sizes": lambda w, v, d: (torch.zeros(v % 4, 2), torch.arange(v % 5), torch.ones([2, v % 3]).sum(), torch.eye(v % 3)),
    "reshape": lambda w, v, d: (T.repeat(v % 3), T.narrow(0, 0, v % 6), T.roll(v), T.expand(v % 3 + 1, 6).sum()),
    "dim": lambda w, v, d: torch.ones(2, 3).sum(v % 2),
    "topk": lambda w, v, d: (T.topk(v % 4 + 1).values, T.chunk(v % 3 + 1), T.split(v % 3 + 1)),
    "split": lambda w, v, d: T.split([v, 6 - v]),
    "dropout": lambda w, v, d: torch.nn.functional.dropout(d.x, v % 2 * 0.5, training=False),
    "arange": lambda w, v, d: (torch.arange(v, v + 3), torch.linspace(0, v, 3)),
    "list of tensors": lambda w, v, d: torch.stack([d.x * n for n in range(v % 3 + 1)]).sum(0),
    "numpy": lambda w, v, d: (np.array([v, 1]), np.float32(v), np.sqrt(abs(v)), np.arange(v % 4), np.add(v, 1)),
    "numpy with": lambda w, v, d: (np.ones(2) * v, np.maximum(v, 2), np.isnan(v), np.clip(v, 0, 3)),
    "operators": lambda w, v, d: (operator.add(v, 1), operator.lt(v, 2), operator.truediv(v, 2), operator.not_(v)),
    "methods": lambda w, v, d: (v.__add__(1), v.__lt__(2), v.__bool__(), v.__float__() if hasattr(v, "__float__") else None),
    "print": lambda w, v, d: print(v, end=""),
    "getattr": lambda w, v, d: getattr(w, f"slot{v}", "none"),
    "setattr": lambda w, v, d: (setattr(w, f"slot{v}", v), vars(w).get("slot2")),
    "eval": lambda w, v, d: eval("v + 1", {"v": v}),
    "is small": lambda w, v, d: (v is True, v is not False),
    "chained": lambda w, v, d: d.x * (v + 1) if (v * 2 + 1) % 3 == 1 else d.x / 2,
    "two numbers": lambda w, v, d: (v + d.x[1].item(), v > d.i[1].item(), max(v, d.i[1].item())),
    "number and tensor": lambda w, v, d: d.x[1] > v if v > 0 else v,
    "again": lambda w, v, d: (v + 1 if v > 1 else 0, v - 1 if v > 1 else 0, d.x.sum().item() if v < 2 else 1),
    "float text": lambda w, v, d: (float(str(v)), float("nan") == v),
    "matrix": lambda w, v, d: torch.eye(2) * v @ torch.ones(2),
    "grad": lambda w, v, d: torch.autograd.grad(((d.x.requires_grad_()) * v).sum(), d.x)[0],
}  # fmt: skip


def _plain(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return "tensor", str(value.dtype), tuple(value.shape), repr(value.tolist()), value.requires_grad
    if isinstance(value, (tuple, list)) and type(value) in (tuple, list):
        return type(value), [_plain(v) for v in value]
    if type(value) is int:
        return int, hex(value)  # text in tens is limited in length
    return type(value), repr(value)


Source = Callable[[Any], Any]
Use = Callable[[Weights, Any, Any], Any]


def _life(get: Source, do: Use, calls: Sequence[Data], compiled: bool) -> list[Any]:
    weights = Weights()

    def region(d: Data) -> Any:
        try:
            return do(weights, get(d), d)
        except Exception as error:
            return type(error), str(error)[:60]

    target = magpy_core.compile(region, backend="eager") if compiled else region
    seen = []
    for data in calls:
        d = copy.deepcopy(data)
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            value = target(d)
        seen.append((_plain(value), printed.getvalue(), weights.shown(), d.x.tolist().__repr__()))
    return seen


def counted(
    source: str,
    use: str,
    sources: Mapping[str, Source] = SOURCES,
    uses: Mapping[str, Use] = USES,
    calls: Sequence[Data] = CALLS,
) -> str | None:
    """How a region that does this with such a number differs from eager mode over the calls; None where it doesn't."""
    expected, got = (_life(sources[source], uses[use], calls, compiled) for compiled in (False, True))
    return first_difference((source, use), expected, got)


FAMILY = Family.product(counted, source=SOURCES, use=USES)


if __name__ == "__main__":
    raise SystemExit(main(FAMILY))
