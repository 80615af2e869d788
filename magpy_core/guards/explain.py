"""Why a guard failed: each read evaluated again, with the value that changed, from what, to what, and where it was read.

Key types: Failure; key function: ``failures``.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Set
from dataclasses import dataclass
from typing import Any

import torch

from magpy_core._compat.torch.tensor_guards import no_torch_function
from magpy_core.findings import Location
from magpy_core.guards.codegen import HOOK_DICTS, same_elements, same_keys, same_names
from magpy_core.opgraph.scalars import Sym
from magpy_core.refgraph.graph import Read
from magpy_core.refgraph.kinds import bounded_repr, is_a, same_scalar
from magpy_core.refgraph.source import Source, dict_entry


@dataclass(frozen=True)
class Failure:
    """One guard that does not hold. ``dims`` are the sizes' dimensions that differ, when that is all that differs."""

    code: str
    name: str
    old: str
    new: str
    location: Location | None
    source: Source | None = None
    number: bool = False  # a number changed into another number of the same type: it can become symbolic
    dims: tuple[int, ...] = ()
    path: tuple[Location, ...] = ()  # to the read, when that is in a library: ``location`` is the user's call into it

    @property
    def message(self) -> str:
        return f"`{self.name}` was {self.old} when this was captured and is {self.new} now."


def sym_value(sym: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A symbolic scalar's value now (sources only)."""
    if not isinstance(sym, Sym):
        return sym
    if sym.kind == "source":
        return sym.payload.evaluate(args, kwargs)
    return sym.payload(*(sym_value(a, args, kwargs) for a in sym.args))


def read_failure(
    read: Read, args: tuple[Any, ...], kwargs: dict[str, Any], where: Callable[[Any], Location | None]
) -> Failure | None:
    """The failure of one read, or None when it holds."""
    op, source, expected = read.op, read.source, read.expected
    loc = where(read.site)

    def no(new: str, old: str | None = None, **extra: Any) -> Failure:
        return Failure("MP201", source.describe(), bounded_repr(expected) if old is None else old, new, loc, source, **extra)

    if op == "absent":
        assert source.base is not None
        key = source.key.evaluate(args, kwargs) if isinstance(source.key, Source) else source.key
        container = source.base.evaluate(args, kwargs)
        if not (dict.__contains__(container, key) if is_a(container, dict) else key in container):
            return None
        return no(bounded_repr(dict_entry(container, key) if is_a(container, dict) else container[key]), "absent")
    if op.startswith("sym:"):
        sym, outcome = expected
        if any(leaf.payload.kind == "draw" for leaf in sym.leaves()):
            return None  # drawing again would give another number
        now = sym_value(sym, args, kwargs)
        if same_scalar(now, outcome):
            return None
        return Failure("MP201", sym.describe(), repr(outcome), repr(now), loc)
    value = source.evaluate(args, kwargs)
    if op == "tensor":
        return None if is_a(value, torch.Tensor) else no(bounded_repr(value), "a Tensor")
    if op in ("is", "identity"):
        return None if value is expected else no(bounded_repr(value))
    if op == "type":
        return None if type(value) is expected else no(f"a {type(value).__name__}", f"a {expected.__name__}")
    if op == "eq":
        if same_scalar(value, expected):
            return None
        number = type(value) is type(expected) and type(value) in (int, float)
        return no(bounded_repr(value), number=number)
    if op == "names":
        if same_names(value, expected):
            return None
        changed = sorted(str(n) for n in expected.symmetric_difference(value))
        return no("with other attributes", f"without a change of {', '.join(changed[:3])}")
    if op == "plain_module":
        d = value.__dict__
        if "forward" in d:
            return no("given a forward of its own", "without one")
        return no("with hooks", "without hooks") if any(d[name] for name in HOOK_DICTS) else None
    if op == "truth":
        return (
            None if bool(value) is expected else no("not empty" if value else "empty", "not empty" if expected else "empty")
        )
    if op == "keys":
        return None if same_keys(value, expected) else no(f"the keys {_listed(value)}", f"the keys {_listed(expected)}")
    if op == "elements":
        return None if same_elements(value, expected) else no(bounded_repr(value))
    other = expected.evaluate(args, kwargs)
    if op == "is_source":
        return None if value is other else no("another object", f"the same object as {expected.describe()}")
    return None if value is not other else no(f"the same object as {expected.describe()}", "another object")


def tensor_failure(
    source: Source,
    recorded: TensorFacts,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    free: Set[int],
    where: Location | None,
) -> Failure | None:
    """How a graph input differs from the recorded one; None when a capture would accept it."""
    value = source.evaluate(args, kwargs)
    name = source.describe()
    if not is_a(value, torch.Tensor):
        return Failure("MP201", name, recorded.describe(), bounded_repr(value), where, source)
    now = TensorFacts.of(value)
    if now == recorded:
        return None
    if now.rank == recorded.rank and now.rest == recorded.rest:
        dims = tuple(
            d for d, (a, b) in enumerate(zip(recorded.shape, now.shape, strict=True)) if a != b and (d not in free or b < 2)
        )
        if dims:
            return Failure("MP201", f"{name}.shape", str(recorded.shape), str(now.shape), where, source, dims=dims)
        if recorded.stride != now.stride and not free:
            return Failure("MP201", f"{name}.stride()", str(recorded.stride), str(now.stride), where, source)
        return None
    return Failure("MP201", name, recorded.describe(), now.describe(), where, source)


@dataclass(frozen=True)
class TensorFacts:
    """What the native tensor check compares."""

    shape: tuple[int, ...]
    stride: tuple[int, ...]
    dtype: torch.dtype
    device: torch.device
    requires_grad: bool
    type: type

    @staticmethod
    def of(t: torch.Tensor) -> TensorFacts:
        with no_torch_function():  # a subclass of the program's is not asked
            stride = tuple(t.stride()) if t.layout is torch.strided else ()
            return TensorFacts(tuple(t.shape), stride, t.dtype, t.device, t.requires_grad, type(t))

    @property
    def rank(self) -> int:
        return len(self.shape)

    @property
    def rest(self) -> tuple[Any, ...]:
        return (self.dtype, self.device, self.requires_grad, self.type)

    def describe(self) -> str:
        grad = ", requires_grad" if self.requires_grad else ""
        return f"{self.type.__name__}{self.shape} {str(self.dtype).removeprefix('torch.')} on {self.device}{grad}"


def _listed(keys: Iterable[Any]) -> str:
    """Keys of a dict: the first few."""
    texts = [bounded_repr(k, 30) for k in itertools.islice(keys, 5)]
    return ", ".join(texts[:4]) + (", ..." if len(texts) > 4 else "") if texts else "of an empty dict"
