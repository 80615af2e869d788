"""Natives: native callables times ways to walk over objects from outside times kinds of objects, changed from call to call.

``map(fn, walk(objects))``: neither the elements nor the calls have events, so what native code reads must be guarded, or
refused. `python -m tests.soundness.generators.natives`. Key function: walked.
"""

from __future__ import annotations

import collections
import copy
import functools
import itertools
import json
import math
import operator
import re
import sys
from collections.abc import Callable
from typing import Any

import torch

import magpy_core
from tests.soundness.harness.families import Family, main


class Box:
    """An object with a ``__dict__``."""

    def __init__(self, v: float) -> None:
        self.v = v

    def method(self) -> float:
        return self.v


class Slotted:
    """An object with a slot."""

    __slots__ = ("v",)

    def __init__(self, v: float) -> None:
        self.v = v


def _bump(o: Any) -> None:
    o.v += 10


def _bump_first(o: Any) -> None:
    o[0] += 10


OBJECTS: dict[str, tuple[Callable[[float], Any], Callable[[Any], Any]]] = {
    "object": (Box, _bump),
    "slots": (Slotted, _bump),
    "list": (lambda v: [v, 2.0], _bump_first),
    "list that grows": (lambda v: [v, 2.0], lambda o: o.append(3.0)),
    "dict": (lambda v: {"v": v}, lambda o: o.update(v=o["v"] + 10)),
    "dict that grows": (lambda v: {"v": v}, lambda o: o.update({f"w{len(o)}": 1.0})),
    "deque": (lambda v: collections.deque([v]), lambda o: o.append(5.0)),
    "list of lists": (lambda v: [[v]], lambda o: _bump_first(o[0])),
    "list of objects": (lambda v: [Box(v)], lambda o: _bump(o[0])),
}

CALLED: dict[str, Callable[..., Any]] = {
    "attrgetter": operator.attrgetter("v"),
    "itemgetter 0": operator.itemgetter(0),
    "itemgetter v": operator.itemgetter("v"),
    "method": operator.methodcaller("method"),
    "copy by methodcaller": operator.methodcaller("copy"),
    "get by methodcaller": operator.methodcaller("get", "v"),
    "member": Slotted.__dict__["v"].__get__,
    "dict.values": dict.values,
    "dict.copy": dict.copy,
    "list.copy": list.copy,
    "next of iter": lambda o: next(iter(o)),
    "getattr": functools.partial(lambda name, o: getattr(o, name), "v"),
    "starred": lambda o: max(*o, 0.0),
    "state": lambda o: o.__reduce_ex__(2),
    **{
        f.__name__: f
        for f in (
            len, list, tuple, sum, max, min, sorted, any, all, str, repr, ascii, vars, iter, dict, collections.deque,
            collections.Counter, copy.copy, copy.deepcopy, json.dumps, math.fsum, enumerate, zip, reversed, set, frozenset,
            bool, itertools.chain, operator.length_hint, operator.truth, operator.not_, format, sys.getsizeof, torch.tensor,
        )
    },
}  # fmt: skip

WALKS: dict[str, Callable[[list[Any]], Any]] = {
    "list": lambda b: b,
    "generator": lambda b: (o for o in b),
    "generator over indices": lambda b: (b[i] for i in range(2)),
    "iterator": iter,
    "map": lambda b: map(lambda o: o, b),
    "map of getitem": lambda b: map(b.__getitem__, range(2)),
    "zip": lambda b: (o for o, _ in zip(b, b, strict=True)),
    "filter": lambda b: filter(lambda o: True, b),
    "reversed": reversed,
    "values": lambda b: dict(enumerate(b)).values(),
    "islice": lambda b: itertools.islice(b, 2),
    "cycle": lambda b: itertools.islice(itertools.cycle(b), 2),
    "chain": lambda b: itertools.chain(b, b),
    "chain from iterable": lambda b: itertools.chain.from_iterable([b]),
    "tee": lambda b: itertools.tee(b)[0],
    "repeat": lambda b: itertools.repeat(b[0], 2),
    "deque": collections.deque,
    "sorted": lambda b: sorted(b, key=lambda o: 1),
}


def _flat(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return value.tolist()
    if isinstance(value, Box | Slotted):
        return "object", value.v
    if isinstance(value, dict):
        return {k: _flat(v) for k, v in value.items()}
    if hasattr(value, "__next__") or isinstance(
        value, list | tuple | set | frozenset | collections.deque | type({}.values())
    ):
        return [_flat(v) for v in value]
    return value


def _outcome(region: Callable[[torch.Tensor], Any]) -> str:
    try:
        text = repr(_flat(region(torch.ones(1))))
    except Exception as error:  # the program's own: it must be the same
        text = f"{type(error).__name__}: {error}"
    return re.sub("0x[0-9a-f]+", "0x", text)


def walked(called: str, walk: str, kind: str) -> str | None:
    """Three calls, then one after each change of an object: how they differ. Nothing is asked where eager mode raises."""
    make, change = OBJECTS[kind]

    def world() -> tuple[list[Any], Callable[[torch.Tensor], Any]]:
        objects = [make(1.0), make(2.0)]
        return objects, lambda x: (x * 2, list(map(CALLED[called], WALKS[walk](objects))))

    (plain, want), (others, region) = world(), world()
    if re.match("[A-Z][A-Za-z]*Error: ", _outcome(want)):
        return None
    compiled = magpy_core.compile(region, backend="eager")
    for _ in range(3):
        _outcome(compiled)
    for i in (1, 0, 1):
        change(plain[i])
        change(others[i])
        expected, got = _outcome(want), _outcome(compiled)
        if expected != got:
            return f"{called}, {walk}, {kind}: {expected} expected, {got} found"
    return None


FAMILY = Family.product(walked, called=CALLED, walk=WALKS, kind=OBJECTS)


if __name__ == "__main__":
    raise SystemExit(main(FAMILY))
