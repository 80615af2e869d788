"""Iterators over lists and tuples from outside: what they will return is known without taking it.
Key functions: is_iterator, sequence_of, upcoming, remaining.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

_TYPES: tuple[type, ...] = (type(iter([])), type(iter(())))


def is_iterator_type(tp: type) -> bool:
    """Whether the place of iterators of this type can be read."""
    return tp in _TYPES


def is_iterator(value: Any) -> bool:
    """Whether this is an iterator whose place can be read."""
    return is_iterator_type(type(value))


def _place(iterator: Any) -> tuple[Sequence[Any], int]:
    """The list or tuple that an iterator goes over, and the index of what it will return next. Raises LookupError if it is
    exhausted, or goes over something else."""
    state: Any = iterator.__reduce__() if type(iterator) in _TYPES else (None, (None,))
    _, (sequence,), *index = state
    if not index or type(sequence) not in (list, tuple):
        raise LookupError("not an iterator over a list or tuple")
    return sequence, index[0]


def sequence_of(iterator: Any) -> Any:
    """What an iterator goes over. Raises LookupError if that is not known."""
    return _place(iterator)[0]


def remaining(iterator: Any) -> int:
    """How many elements an iterator will return; -1 if that is not known."""
    return int(iterator.__length_hint__()) if type(iterator) in _TYPES else -1


def upcoming(iterator: Any, skipped: int) -> Any:
    """What an iterator will return after so many others. Raises LookupError if that is not known."""
    sequence, index = _place(iterator)
    return sequence[index + skipped]


def skip(iterator: Any, times: int) -> None:
    """Take so many elements, or all."""
    for _ in range(times):
        next(iterator, None)
