"""Symbolic scalars: Python numbers that may differ from call to call, as expressions over their origins. So are texts that
are made of them (`opgraph.texts`).

A leaf is a value read from outside (``source``), a tensor's value read by Python (``node``), or a dimension of a graph
input (``size``). The program sees ordinary numbers; a symbol is found again by the identity of the number object (see
``_compat.cpython.fresh``). Key types: Sym, ScalarTable.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

from magpy_core._compat.cpython.fresh import fresh_float, fresh_int, fresh_text
from magpy_core.opgraph.host_calls import HostCall
from magpy_core.refgraph.kinds import NUMPY_NUMBERS
from magpy_core.refgraph.source import Source

BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv, "//": operator.floordiv,
    "%": operator.mod, "**": operator.pow, "<<": operator.lshift, ">>": operator.rshift,
    "&": operator.and_, "|": operator.or_, "^": operator.xor,
}  # fmt: skip
UNARY: dict[str, Callable[[Any], Any]] = {"-": operator.neg, "+": operator.pos, "~": operator.invert}
COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "<": operator.lt, "<=": operator.le, "==": operator.eq, "!=": operator.ne, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip

_DIVISIONS = frozenset({operator.truediv, operator.floordiv, operator.mod, operator.lshift, operator.rshift})
_POWERS = frozenset({operator.pow, pow, math.pow})


def can_raise(fn: Callable[..., Any], args: tuple[Any, ...]) -> bool:
    """Whether an operation on numbers may raise, or give another type, for other numbers of the same types."""
    if isinstance(fn, HostCall):
        return True
    if fn in _DIVISIONS:
        return isinstance(args[1], Sym)
    if fn in _POWERS:
        exponent = args[1]
        return not (type(exponent) is int and exponent >= 0 and len(args) == 2 and _type(args[0]) is int)
    if fn in (int, round):
        return _type(args[0]) is float
    if fn in (min, max):
        return len({_type(a) for a in args}) > 1  # the result has the type of the argument that is chosen
    return getattr(fn, "__module__", "") == "math" and fn is not math.fabs


def is_float_division(fn: Callable[..., Any], args: tuple[Any, ...]) -> bool:
    """Whether an operation is a division that raises for a divisor of 0 only: between ints, or an int and a float, it also
    raises for numbers that are too large."""
    return fn is operator.truediv and _type(args[0]) is float and _type(args[1]) is float


def may_raise_in_graph(fn: Callable[..., Any], args: tuple[Any, ...]) -> bool:
    """The same for arithmetic on numbers that only the graph knows, except an optimizer's bias correction."""
    return can_raise(fn, args) and not is_bias_correction(fn, args)


def cannot_overflow(base: Any) -> bool:
    """Whether ``base ** step`` is a number for every step count from 0 on: an optimizer's ``beta ** step``."""
    return type(base) is float and 0.0 < base <= 1.0


def is_bias_correction(fn: Callable[..., Any], args: tuple[Any, ...]) -> bool:
    """An optimizer's ``beta ** step``, ``lr / (1 - beta ** step)`` and ``(1 - beta ** step) ** 0.5``, which raise for step
    counts below 1 only. If the step count is a tensor, undoing such a failure would need a copy of every parameter per
    step."""
    if fn in _POWERS and type(args[0]) is float:
        return cannot_overflow(args[0])
    number = args[1] if fn is operator.truediv else args[0]
    if not isinstance(number, Sym) or number.payload is not operator.sub or number.args[0] != 1:
        return False
    power = number.args[1]
    # with a ``beta`` below 1, ``1 - beta ** step`` is not 0 from step 1 on
    if not isinstance(power, Sym) or power.payload not in _POWERS or not cannot_overflow(power.args[0]):
        return False
    return power.args[0] < 1.0 and (fn in (operator.truediv, math.sqrt) or (fn in _POWERS and args[1] == 0.5))


def _type(value: Any) -> type:
    return type(value.hint if isinstance(value, Sym) else value)


_COPIES: dict[type, Callable[[Any], Any]] = {float: fresh_float, int: fresh_int, str: fresh_text}
_TEXT = {f: t for t, f in (BINARY | COMPARE).items()}


class Sym:
    """One expression: ``fn(*args)`` over other Syms and constants, or a leaf.

    ``kind``: "source" (payload: Source), "node" (payload: FX node whose value is a Python scalar), "clock" (payload:
    ClockRead), "tensor" (payload: FX node of a tensor, for a host call), "call" (payload: fn).
    ``hint``: the value in the recorded call.
    """

    __slots__ = ("args", "hint", "kind", "on_host", "payload")

    def __init__(self, kind: str, payload: Any, args: tuple[Any, ...], hint: Any) -> None:
        self.kind = kind
        self.payload = payload
        self.args = args
        self.hint = hint
        # computable before the graph runs
        self.on_host: bool = kind == "source" or (kind == "call" and all(a.on_host for a in args if isinstance(a, Sym)))

    def follows_sizes(self) -> bool:
        """Whether it depends on the size of an input."""
        return any(leaf.kind == "source" and leaf.payload.kind == "size" for leaf in self.leaves())

    def follows_clock(self) -> bool:
        """Whether it depends on what a clock shows after the graph has run."""
        return any(leaf.kind == "clock" for leaf in self.leaves())

    def can_be_followed(self) -> bool:
        """Whether a size that it decides can be: an integer that is an input of the graph, or computed in it from such
        integers and the sizes of inputs."""
        if self.on_host and not self.follows_sizes():
            return type(self.hint) is int
        if self.kind == "call":
            return all(a.can_be_followed() if isinstance(a, Sym) else type(a) is int for a in self.args)
        return self.kind == "source"

    @property
    def is_of_graph(self) -> bool:
        """Whether it is a leaf whose value the graph computes."""
        return self.kind in ("node", "tensor")

    @property
    def needs_host(self) -> bool:
        """Whether only Python can compute it, so that a graph gets the result."""
        return self.kind == "call" and (
            isinstance(self.payload, HostCall) or any(a.needs_host for a in self.args if isinstance(a, Sym))
        )

    def leaves(self) -> list[Sym]:
        if self.kind != "call":
            return [self]
        out: list[Sym] = []
        for a in self.args:
            if isinstance(a, Sym):
                out += [leaf for leaf in a.leaves() if leaf not in out]
        return out

    def value(self, now: Callable[[Source], Any]) -> Any:
        """Its value, where all its leaves are sources: ``now`` gives theirs."""
        if self.kind == "source":
            return now(self.payload)
        return self.payload(*(a.value(now) if isinstance(a, Sym) else a for a in self.args))

    @property
    def path(self) -> str:
        """Stable over recordings, as that of a source is."""
        if self.kind != "call":
            return self.payload.path if self.kind == "source" else self.describe()
        args = ", ".join(a.path if isinstance(a, Sym) else repr(a) for a in self.args)
        return f"{getattr(self.payload, '__name__', self.payload)}({args})"

    def describe(self) -> str:
        if self.kind == "source":
            assert isinstance(self.payload, Source)
            return self.payload.describe()
        if self.kind in ("node", "tensor"):
            return f"%{self.payload.name}"
        if self.kind == "clock":
            return f"time.{self.payload.clock.__name__}()"
        args = [a.describe() if isinstance(a, Sym) else repr(a) for a in self.args]
        text = _TEXT.get(self.payload)
        if text and len(args) == 2:
            return f"({args[0]} {text} {args[1]})"
        return f"{getattr(self.payload, '__name__', self.payload)}({', '.join(args)})"


class ScalarTable:
    """The symbols of one recording, found by the identity of the Python number the program holds."""

    def __init__(self) -> None:
        self._by_id: dict[int, tuple[Any, Sym, Any]] = {}  # the copy, its symbol, the number it stands for
        self._leaves: dict[int, Sym] = {}
        self._calls: dict[tuple[Any, ...], Sym] = {}
        self.has_texts = False

    def __bool__(self) -> bool:
        return bool(self._by_id)

    def get(self, value: Any) -> Sym | None:
        entry = self._by_id.get(id(value))
        return entry[1] if entry is not None else None

    def bind(self, value: Any, sym: Sym) -> Any:
        """A private copy of ``value`` that carries ``sym``."""
        make = type(value) if type(value) in NUMPY_NUMBERS else _COPIES.get(type(value))
        if make is None:
            raise TypeError(f"only numbers and texts carry a symbol, not {type(value).__name__}")
        copy: Any = make(value)
        self.has_texts |= type(value) is str
        self._by_id[id(copy)] = (copy, sym, self.original(value))
        return copy

    def original(self, value: Any) -> Any:
        """The number that the program would hold without us: what ``value`` is a private copy of, or ``value`` itself."""
        entry = self._by_id.get(id(value))
        return entry[2] if entry is not None else value

    def source(self, source: Source, hint: Any) -> Sym:
        sym = self._leaves[id(source)] = self._leaves.get(id(source)) or Sym("source", source, (), hint)
        return sym

    def call(self, fn: Callable[..., Any], args: tuple[Any, ...], hint: Any) -> Sym:
        key = (fn, *(("s", id(a)) if isinstance(a, Sym) else (type(a), repr(a)) for a in args))
        sym = self._calls[key] = self._calls.get(key) or Sym("call", fn, args, hint)
        return sym

    def leaves(self) -> list[Sym]:
        """Every leaf that a number in the program depends on."""
        return list(dict.fromkeys(leaf for _, sym, _ in self._by_id.values() for leaf in sym.leaves()))
