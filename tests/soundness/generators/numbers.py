"""Numbers from outside that vary: every way to compute one from another times everything Python does with a number.

After a change a number from outside is carried as a symbol, and so is what is computed from it: its value is computed anew
at every call, but what the program saw of it otherwise (its type, that nothing was raised) must be part of the guard. The
numbers are whole, of floating point, and both in turn; they change sign, become zero, large, NaN and infinite.
Each use asks one thing, as one that fixes the number hides what the others ask.
`python -m tests.soundness.generators.numbers`. Key function: numbered.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable
from typing import Any

import torch

from tests.soundness.generators.numbers_of_data import Data, Weights, counted
from tests.soundness.harness.families import Family, main


class Number(Data):
    """What one call is given: ``n`` in several places, and data that stay as they are."""

    def __init__(self, n: Any) -> None:
        super().__init__(1.5, 2)
        self.n = n
        self.held = {"n": n, "list": [n, (n,)]}


WHOLE = [2, 2, 3, -2, 0, 1, 70, 5, 2, 4]
FLOATS = [1.5, 1.5, 2.5, -1.5, 0.0, 1.0, 300.0, math.nan, math.inf, -0.0, 3.0, 1.5]
BOTH = [2, 3, 2.5, 4.0, 1.5, 1, True, 0.5, 7, False, 3.5, 2]
CALLS: dict[str, list[Data]] = {
    "whole": [Number(n) for n in WHOLE], "float": [Number(n) for n in FLOATS], "both": [Number(n) for n in BOTH],
}  # fmt: skip

SOURCES: dict[str, Callable[[Any], Any]] = {
    "itself": lambda d: d.n,
    "of a list": lambda d: d.held["list"][1][0],
    "more": lambda d: d.n + 1,
    "less a half": lambda d: d.n - 0.5,
    "negative": lambda d: -d.n,
    "positive": lambda d: +d.n,
    "size": lambda d: abs(d.n),
    "twice": lambda d: d.n * 2,
    "half": lambda d: d.n / 2,
    "whole half": lambda d: d.n // 2,
    "rest": lambda d: d.n % 3,
    "rest of half": lambda d: d.n % 1.5,
    "square": lambda d: d.n**2,
    "root": lambda d: d.n**0.5,
    "inverse": lambda d: d.n**-1,
    "power of two": lambda d: 2**d.n,
    "by it": lambda d: 6 / d.n,
    "whole by it": lambda d: 6 // d.n,
    "rest by it": lambda d: 6 % d.n,
    "at most": lambda d: min(d.n, 3),
    "at least": lambda d: max(d.n, 2),
    "at most, mixed": lambda d: min(d.n, 2.75),
    "between": lambda d: max(1, min(d.n, 2.5)),
    "least of many": lambda d: min(d.n, 3, 2.5, d.n + 1),
    "least of a list": lambda d: min([d.n, 3]),
    "greatest by key": lambda d: max(d.n, -2, key=abs),
    "rounded": lambda d: round(d.n),
    "rounded to one": lambda d: round(d.n * 0.3, 1),
    "rounded to tens": lambda d: round(d.n, -1),
    "int": lambda d: int(d.n),
    "float": lambda d: float(d.n),
    "truth": lambda d: bool(d.n),
    "floor": lambda d: math.floor(d.n),
    "ceil": lambda d: math.ceil(d.n / 2),
    "trunc": lambda d: math.trunc(d.n),
    "square root": lambda d: math.sqrt(d.n),
    "exponential": lambda d: math.exp(min(d.n, 5)),
    "logarithm": lambda d: math.log(d.n),
    "sine": lambda d: math.sin(d.n),
    "power of math": lambda d: math.pow(d.n, 3),
    "three powers": lambda d: pow(d.n, 3),
    "quotient": lambda d: divmod(d.n, 2)[0],
    "sum": lambda d: sum([d.n, 1]),
    "sign": lambda d: math.copysign(2, d.n),
    "bits": lambda d: d.n & 3,
    "shifted": lambda d: d.n << 1,
    "compared": lambda d: d.n > 1,
    "chosen": lambda d: d.n if d.n > 1 else 2,
    "or": lambda d: d.n or 4,
    "as an index": lambda d: operator.index(d.n),
    "real part": lambda d: d.n.real,
    "complex": lambda d: complex(d.n, 1),
    "of text": lambda d: float(str(d.n)),
    "twice a size": lambda d: d.n * d.x.shape[0],
}


@functools.singledispatch
def _dispatched(v: Any) -> str:
    return "other"


@_dispatched.register
def _(v: int) -> str:
    return "whole"


@_dispatched.register
def _(v: float) -> str:
    return "float"


def _matched(v: Any) -> str:
    match v:
        case bool():
            return "truth"
        case int():
            return "whole"
        case float():
            return "float"
        case _:
            return "else"


T = torch.arange(6.0)

USES: dict[str, Callable[[Weights, Any, Any], Any]] = {
    "itself": lambda w, v, d: v,
    "type": lambda w, v, d: type(v),
    "class": lambda w, v, d: v.__class__,
    "type chosen by": lambda w, v, d: d.x * 2 if type(v) is float else d.x * 3,
    "whole": lambda w, v, d: d.x * 2 if isinstance(v, int) else d.x * 3,
    "truth value": lambda w, v, d: isinstance(v, bool),
    "key": lambda w, v, d: {int: "i", float: "f", bool: "b"}.get(type(v)),
    "name": lambda w, v, d: type(v).__name__,
    "match": lambda w, v, d: _matched(v),
    "dispatch": lambda w, v, d: _dispatched(v),
    "attribute": lambda w, v, d: hasattr(v, "bit_length"),
    "is true": lambda w, v, d: v is True,
    "dtype": lambda w, v, d: (d.i * v).dtype,
    "chosen by dtype": lambda w, v, d: d.x + 1 if (d.i + v).is_floating_point() else d.x,
    "dtype of new": lambda w, v, d: torch.tensor(v).dtype,
    "dtype of full": lambda w, v, d: torch.full((2,), v).dtype,
    "dtype of a list": lambda w, v, d: torch.tensor([v, 1]).dtype,
    "result type": lambda w, v, d: torch.result_type(d.i, v),
    "dtype of where": lambda w, v, d: torch.where(d.b, d.i, v).dtype,
    "dtype of clamp": lambda w, v, d: d.i.clamp(max=v).dtype,
    "dtype of power": lambda w, v, d: (d.i**v).dtype,
    "dtype of division": lambda w, v, d: (d.i // v).dtype,
    "dtype of arange": lambda w, v, d: torch.arange(v).dtype,
    "type of sum": lambda w, v, d: type(v + 1),
    "type of product": lambda w, v, d: type(v * 2.5),
    "type of quotient": lambda w, v, d: type(v // 2),
    "type of square": lambda w, v, d: type(v**2),
    "type of least": lambda w, v, d: type(min(v, 2)),
    "type of rounded": lambda w, v, d: type(round(v)),
    "type of size": lambda w, v, d: type(abs(v)),
    "twice": lambda w, v, d: v * 2,
    "half": lambda w, v, d: v / 2,
    "rest": lambda w, v, d: v % 2,
    "negative": lambda w, v, d: -v,
    "less": lambda w, v, d: v < 2,
    "equal": lambda w, v, d: v == 2,
    "chosen": lambda w, v, d: d.x * 2 if v > 1 else d.x * 3,
    "truth": lambda w, v, d: 1 if v else 2,
    "in whole tensor": lambda w, v, d: d.i * v,
    "in tensor": lambda w, v, d: d.x * v,
    "from tensor": lambda w, v, d: v - d.x,
    "in truths": lambda w, v, d: d.b * v,
    "kept": lambda w, v, d: setattr(w, "kept", [v]),
    "int": lambda w, v, d: int(v),
    "float": lambda w, v, d: float(v),
    "rounded": lambda w, v, d: round(v, 1),
    "floor": lambda w, v, d: math.floor(v),
    "root": lambda w, v, d: math.sqrt(v),
    "by it": lambda w, v, d: 1 / v,
    "index": lambda w, v, d: T[v],
    "slice": lambda w, v, d: T[:v],
    "zeros": lambda w, v, d: torch.zeros(v % 4).shape,
    "range": lambda w, v, d: len(range(v)),
    "text": lambda w, v, d: f"{v}",
    "sign of zero": lambda w, v, d: math.copysign(1, v),
}


def numbered(kind: str, source: str, use: str) -> str | None:
    """As `counted`, for numbers of a kind."""
    line = counted(source, use, SOURCES, USES, CALLS[kind])
    return line and f"{kind}: {line}"


FAMILY = Family.product(numbered, kind=CALLS, source=SOURCES, use=USES)


if __name__ == "__main__":
    raise SystemExit(main(FAMILY))
