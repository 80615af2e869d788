"""Whole shapes that vary: every way to a `torch.Size` times everything Python does with one.

A shape is a tuple whose elements are sizes of the inputs' or follow from them: compared, hashed, sliced, joined, printed,
unpacked, used as a key, given to torch. `python -m tests.soundness.generators.shapes`. Key function: shaped.
"""

from __future__ import annotations

import copy
import itertools
import json
import math
import operator
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from tests.soundness.generators.numbers_of_data import Weights, counted
from tests.soundness.generators.sizes import CALLS, Sized
from tests.soundness.harness.families import Family, main

SOURCES: dict[str, Callable[[Sized], Any]] = {
    "shape": lambda d: d.t.shape,
    "size": lambda d: d.t.size(),
    "of a product": lambda d: (d.t @ torch.ones(2, 3)).shape,
    "of a part": lambda d: d.t[1:5].shape,
    "of two": lambda d: (d.t[:, :1] + d.t[:, 0]).shape,
    "turned": lambda d: d.t.t().shape,
    "stacked": lambda d: torch.stack([d.t, d.t]).shape,
    "leading": lambda d: d.t.shape[:1],
    "joined": lambda d: d.t.shape[:-1] + (4,),  # noqa: RUF005
    "made": lambda d: torch.Size((d.n, 2)),
    "made of sizes": lambda d: torch.Size([d.t.shape[0] // 2, d.t.shape[0]]),
    "tuple": lambda d: tuple(d.t.shape),
    "list": lambda d: list(d.t.size()),
    "transformed": lambda d: torch.fft.rfft(d.t, dim=0).shape,
}


def _unpacked(v: Any) -> Any:
    first, *rest = v
    return first, rest


def _kept(w: Weights, v: Any) -> Any:
    same = w.kept == v
    w.kept = v
    return same


def _table(w: Weights, v: Any) -> Any:
    w.default[tuple(v)].append(len(w.default))
    return w.default[tuple(v)]


def _matched(v: Any) -> Any:
    match v:
        case (7, _):
            return "seven"
        case (n,):
            return n
        case (a, b):
            return a * b
        case _:
            return len(v)


def _rows(v: Any) -> Any:
    total = torch.zeros(())
    for n in v:
        total = total + n
    return total


USES: dict[str, Callable[[Weights, Any, Sized], Any]] = {
    "itself": lambda w, v, d: v,
    "type": lambda w, v, d: (type(v), isinstance(v, tuple), isinstance(v, torch.Size)),
    "elements": lambda w, v, d: (v[0], v[-1], v[:1], v[::-1], v[-2:]),
    "length": lambda w, v, d: len(v),
    "unpacked": lambda w, v, d: _unpacked(v),
    "compared": lambda w, v, d: (v == (7, 2), v != (8, 2), tuple(v) < (8, 0), tuple(v) >= (5,)),
    "with another": lambda w, v, d: (v == d.t.shape, tuple(v) == tuple(d.x.shape), v is d.t.shape),
    "member": lambda w, v, d: (7 in v, v in [(7, 2), (3, 2)], tuple(v) in {(7, 2), (5, 2)}),
    "found": lambda w, v, d: (v.count(2), v.index(2)),
    "found seven": lambda w, v, d: v.index(7),
    "key": lambda w, v, d: ({(7, 2): "a", (8, 2): "b"}.get(tuple(v), "none"), {tuple(v): 1}),
    "hash": lambda w, v, d: hash(tuple(v)) == hash((7, 2)),
    "joined": lambda w, v, d: ((*v, 3), tuple(v) + (1,), [*v] * 2),  # noqa: RUF005
    "text": lambda w, v, d: (f"{v}", str(v), repr(v), "%s" % (v,), "x".join(map(str, v))),  # noqa: UP031
    "numbers": lambda w, v, d: (max(v), min(v), sum(v), sorted(v), math.prod(v), any(n > 7 for n in v), all(v)),
    "walked": lambda w, v, d: ([n + 1 for n in v], list(reversed(v)), dict(enumerate(v)), list(zip(v, d.t.shape))),  # noqa: B905
    "mapped": lambda w, v, d: (list(map(float, v)), list(filter(lambda n: n > 4, v)), list(itertools.accumulate(v))),
    "number of elements": lambda w, v, d: (v.numel(), v.numel() % 2 == 0),
    "json": lambda w, v, d: json.dumps(v),
    "pickled": lambda w, v, d: (pickle.loads(pickle.dumps(tuple(v))), copy.copy(v), copy.deepcopy([v])),
    "NumPy": lambda w, v, d: (np.prod(v), np.array(v), np.zeros(v).shape),
    "getter": lambda w, v, d: (operator.itemgetter(0)(v), operator.eq(v, (7, 2))),
    "matched": lambda w, v, d: _matched(v),
    "kept": lambda w, v, d: _kept(w, v),
    "kept in a table": lambda w, v, d: _table(w, v),
    "truth": lambda w, v, d: (bool(v), not v, v and v[0]),
    "branch": lambda w, v, d: d.x + 1 if v[0] > 6 else d.x - 1,
    "zeros": lambda w, v, d: (torch.zeros(v), d.x.new_ones(v), torch.full(tuple(v), 2.0), torch.ones(*v)),
    "expanded": lambda w, v, d: (torch.ones(1).expand(v), torch.broadcast_to(d.x[0], v)),
    "viewed": lambda w, v, d: (torch.arange(v[0] * 2).view(v[0], -1), torch.arange(math.prod(v)).reshape(v)),
    "norm": lambda w, v, d: torch.nn.functional.layer_norm(torch.ones(v), v[1:]),
    "tensor": lambda w, v, d: (torch.tensor(v), torch.tensor(v).prod(), torch.as_tensor(list(v))),
    "added": lambda w, v, d: _rows(v),
    "checked": lambda w, v, d: [None for _ in [0] if v[0] == d.n] or _rows(v),
    "raises": lambda w, v, d: (v[5], None),
    "broadcast": lambda w, v, d: torch.broadcast_shapes(v, (1,)),
    "random": lambda w, v, d: (torch.manual_seed(0), torch.rand(v))[1],
}  # fmt: skip


def shaped(source: str, use: str) -> str | None:
    """How a region that does this with such a shape differs from eager mode over the calls; None where it doesn't."""
    return counted(source, use, SOURCES, USES, CALLS)


FAMILY = Family.product(shaped, source=SOURCES, use=USES)


if __name__ == "__main__":
    raise SystemExit(main(FAMILY))
