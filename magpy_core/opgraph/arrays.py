"""NumPy in an operator graph: calls on arrays that hold tensors' data, as nodes making the same call again.

A graph can't hold NumPy's own constants (dtypes, arrays), so a node's target is a function that has the call's arguments
with holes in them, and its inputs fill the holes. Key types: Hole; key functions: ``again``, ``array_facts``.
"""

from __future__ import annotations

import functools
import inspect
import types
from collections.abc import Callable, Iterator
from typing import Any

import torch

from magpy_core.refgraph.kinds import is_a


class Hole:
    """The place of a graph value in a call's arguments."""

    __slots__ = ("index",)  # no dataclass: what makes one has no file that tells the monitor whose it is

    def __init__(self, index: int) -> None:
        self.index = index


class Kept:
    """An array of plain numbers, as it was: every call gets a copy of its own."""

    __slots__ = ("array",)

    def __init__(self, array: Any) -> None:
        self.array = array


def _filled(tree: Any, values: tuple[Any, ...]) -> Any:
    kind = type(tree)
    if kind is Hole:
        return values[tree.index]
    if kind is Kept:
        return tree.array.copy()
    if kind is tuple or kind is list:
        return kind(_filled(v, values) for v in tree)
    if kind is dict:
        return {k: _filled(v, values) for k, v in tree.items()}
    if kind is slice:
        return slice(_filled(tree.start, values), _filled(tree.stop, values), _filled(tree.step, values))
    return tree


def again(fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Callable[..., Any]:
    """A function of the graph values that makes the call ``fn(*args, **kwargs)``."""

    def call(*values: Any) -> Any:
        return fn(*_filled(args, values), **_filled(kwargs, values))

    name = getattr(fn, "__name__", type(fn).__name__)
    call.__name__ = call.__qualname__ = "numpy_" + "".join(c for c in name if c.isalnum() or c == "_")
    return call


def array_like(kept: Any) -> Any:
    """A new array with the numbers and the layout of ``kept``."""
    made = kept.copy(order="K")
    made.flags.writeable = kept.flags.writeable
    return made


def view_like(owner: Any, shape: Any, dtype: Any, offset: int, strides: Any, writeable: bool) -> Any:
    """A view of an array's memory."""
    made = type(owner)(shape, dtype, owner, offset, strides)
    made.flags.writeable = writeable
    return made


def view_parts(owner: Any, view: Any) -> tuple[Any, ...]:
    """What :func:`view_like` makes ``view`` of, but for its owner."""
    offset = view.__array_interface__["data"][0] - owner.__array_interface__["data"][0]
    return (view.shape, view.dtype, offset, view.strides, bool(view.flags.writeable))


def array_facts(value: Any) -> tuple[Any, ...]:
    """What Python may know of an array without its numbers: type, shape, dtype, strides."""
    return (type(value).__name__, value.shape, value.dtype.str, value.strides)


# Functions and operators of one element at a time: shape and dtype of the result follow, whatever the numbers are.
ELEMENTWISE = frozenset({
    "T", "abs", "absolute", "add", "and_", "ceil", "clip", "cos", "divide", "eq", "exp", "floor", "floordiv", "ge",
    "gt", "iadd", "iand", "ifloordiv", "imag", "imod", "imul", "invert", "ior", "ipow", "isinf", "isnan", "isub",
    "itruediv", "ixor", "le", "log", "logical_and", "logical_not", "logical_or", "lt", "matmul", "maximum", "minimum",
    "mod", "mul", "multiply", "ne", "neg", "or_", "pos", "pow", "power", "real", "sin", "sqrt", "square", "sub",
    "subtract", "tanh", "true_divide", "truediv", "xor",
})  # fmt: skip
# Functions and methods whose result's shape and dtype follow from those of their arguments.
SHAPED = frozenset({
    "T", "abs", "absolute", "add", "all", "any", "argmax", "argmin", "argsort", "array", "asarray",
    "ascontiguousarray", "astype", "ceil", "clip", "concatenate", "copy", "cos", "cumsum", "divide", "dot", "einsum",
    "exp", "expand_dims", "fft", "flatten", "flip", "float32", "float64", "floor", "getitem", "hstack", "ifft",
    "imag", "int32", "int64", "isinf", "isnan", "item", "log", "logical_and", "logical_not", "logical_or", "matmul",
    "max", "maximum", "mean", "min", "minimum", "mul", "multiply", "neg", "norm", "numpy", "ones_like", "outer",
    "power", "prod", "ravel", "real", "reshape", "rfft", "roll", "round", "sin", "sort", "sqrt", "square", "squeeze",
    "stack", "std", "sub", "subtract", "sum", "swapaxes", "tanh", "tile", "tolist", "transpose", "true_divide",
    "truediv", "var", "vstack", "where", "zeros_like",
})  # fmt: skip
# Functions that write into nothing they are given.
READING = (SHAPED - {"sort"}) | frozenset({  # the method `sort` sorts in place
    "arange", "argwhere", "array_split", "bincount", "diff", "flatnonzero", "histogram", "interp", "linspace",
    "median", "nonzero", "percentile", "quantile", "repeat", "searchsorted", "split", "unique",
})  # fmt: skip


def _flat(values: Any) -> Iterator[Any]:
    for v in values:
        if type(v) in (tuple, list):
            yield from _flat(v)
        else:
            yield v


@functools.lru_cache(maxsize=1024)
def _place_of_out(fn: Any) -> int | None:
    """The position of the argument ``out``; a position behind all others if there is none, None if nobody knows."""
    try:
        names = list(inspect.signature(fn).parameters)
    except (TypeError, ValueError):
        return None
    return names.index("out") if "out" in names else len(names)


def may_write(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
    """The arguments that a function or method of NumPy may write into."""
    sorts = type(fn) is types.MethodDescriptorType and fn.__name__ == "sort"
    if fn.__name__ not in READING or sorts:
        return list(_flat((*args, *kwargs.values())))
    place = _place_of_out(fn)
    if place is None:
        place = 1 if type(fn) is types.MethodDescriptorType else 0
    return list(_flat((*args[place:], kwargs.get("out"))))


# Native functions that keep or look at an object and never take its elements.
_KEEPING = frozenset({"append", "appendleft", "insert", "add", "setdefault", "__setitem__", "__setattr__", "getattr",
                      "setattr", "hasattr", "isinstance", "issubclass", "id", "type", "callable"})  # fmt: skip


def iterates(fn: Any) -> bool:
    """Whether this is native code that may take the elements of an array it is given."""
    native = is_a(fn, (types.BuiltinFunctionType, types.MethodWrapperType, types.MethodDescriptorType)) or (
        is_a(fn, type) and not fn.__flags__ & (1 << 9)
    )
    return native and fn.__name__ not in _KEEPING and not is_a(getattr(fn, "__self__", None), torch.Tensor)


def _view(name: str) -> Callable[[Any], Any]:
    def view(array: Any) -> Any:
        return getattr(array, name)

    view.__name__ = name
    return view


VIEWS = {name: _view(name) for name in ("T", "real", "imag")}
