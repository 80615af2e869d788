"""Host calls: what Python computes from values that vary, before or after the graph, but no graph: NumPy's arithmetic on
single numbers, and functions of lists of numbers. Key type: HostCall. Key functions: of_numbers, called.
"""

from __future__ import annotations

import functools
import operator
import sys
from collections.abc import Callable
from typing import Any

from magpy_core.refgraph.kinds import NUMPY_NUMBERS


class HostCall:
    """``fn(*values)``. ``__qualname__`` says what it computes."""

    def __init__(self, fn: Callable[..., Any], name: str) -> None:
        self._fn = fn
        self.__name__ = self.__qualname__ = name

    def __call__(self, *values: Any) -> Any:
        return self._fn(*values)

    def __repr__(self) -> str:
        return self.__qualname__


class _OfNumpy(HostCall):
    """It raises where NumPy would warn: then the call runs in eager mode."""

    def __call__(self, *values: Any) -> Any:
        numpy = sys.modules["numpy"]
        raising = {kind: "ignore" if does == "ignore" else "raise" for kind, does in numpy.geterr().items()}
        with numpy.errstate(**raising):
            return self._fn(*values)


def _name_of(fn: Callable[..., Any]) -> str:
    return f"{getattr(fn, '__module__', None) or 'numpy'}.{getattr(fn, '__qualname__', None) or fn.__name__}"


@functools.cache
def _of_numpy(fn: Callable[..., Any]) -> HostCall:
    return _OfNumpy(fn, _name_of(fn))


def of_numbers(fn: Callable[..., Any], numbers: tuple[Any, ...]) -> Callable[..., Any]:
    """What computes ``fn(*numbers)`` again: ``fn`` itself, unless NumPy computes it."""
    return _of_numpy(fn) if not isinstance(fn, HostCall) and any(type(n) in NUMPY_NUMBERS for n in numbers) else fn


@functools.cache
def called(fn: Callable[..., Any], names: tuple[str, ...]) -> HostCall:
    """``fn``, the last arguments of which are given by ``names``."""
    if not names:
        return _of_numpy(fn)
    return _OfNumpy(lambda *values: _with_names(fn, names, values), f"{_name_of(fn)} {' '.join(names)}")


def _with_names(fn: Callable[..., Any], names: tuple[str, ...], values: tuple[Any, ...]) -> Any:
    first = len(values) - len(names)
    return fn(*values[:first], **dict(zip(names, values[first:], strict=True)))


def _extended(entry: tuple[Any, ...], maxlen: int | None, *added: Any) -> list[Any]:
    values = [*entry, *added]
    return values if maxlen is None else values[max(0, len(values) - maxlen) :]


def _stored(array: Any, value: Any, key: tuple[int, ...]) -> Any:
    copy = array.copy()
    copy[key] = value
    return copy


def _sliced(values: list[Any], start: int | None, stop: int | None, step: int | None) -> list[Any]:
    return values[start:stop:step]


ITEM = HostCall(operator.methodcaller("item"), "item")
"""The Python number that is equal to one of NumPy's."""
EXTENDED = HostCall(_extended, "extended")
"""A list from what it held at entry, its maximum length, and the numbers that are added."""
SLICED = HostCall(_sliced, "sliced")
ELEMENT = HostCall(operator.getitem, "element")
STORED = HostCall(lambda array, value, *key: _stored(array, value, key), "stored")
"""An array with another number at one place."""
TO_ARRAY = HostCall(operator.methodcaller("numpy"), "numpy")
BOUNDS = HostCall(slice, "slice")
INDICES = HostCall(lambda array: array, "indices")
"""An array of indices, whose shape does not vary."""
PLACES = HostCall(lambda *places: places, "places")
LISTED = HostCall(lambda *values: list(values), "listed")
"""A list of these elements."""
