"""Iterators that can be looked into without being advanced: what ``next`` would give is a source, and ``next`` an effect.

Only types of the interpreter whose state says it all: iterators of lists, tuples, ranges and text, and ``itertools.count``.
Key functions: `can_peek`, `peek`, `underlying`.
"""

from __future__ import annotations

import ast
import itertools
import sys
from typing import Any

_SEQUENCE = frozenset(
    {type(iter([])), type(iter(())), type(iter(range(0))), type(iter(range(1 << 70))), type(iter("")), type(iter("é"))}
)
_COUNT = itertools.count
PEEKABLE: frozenset[type] = _SEQUENCE | {_COUNT}


def can_peek(iterator: Any) -> bool:
    """Whether `peek` understands this very iterator (a ``count`` of something else than numbers it does not)."""
    if type(iterator) is not _COUNT:
        return type(iterator) in _SEQUENCE
    try:
        return all(type(n) in (int, float) for n in _count_state(iterator))
    except (ValueError, SyntaxError):
        return False


def _count_state(iterator: itertools.count[Any]) -> tuple[Any, Any]:
    """The next number and the step. Pickling a count, which would tell too, is deprecated from Python 3.12 on."""
    if sys.version_info < (3, 12):
        state = iterator.__reduce__()[1]
    else:
        text = repr(iterator).removeprefix("count")
        state = ast.literal_eval(text if "," in text else f"({text.strip('()')},)")
    return (state[0], state[1] if len(state) > 1 else 1)


def _rest(iterator: Any) -> tuple[Any, int]:
    """The sequence under an iterator and the next index; (None, 0) when it is exhausted."""
    state = iterator.__reduce__()
    if len(state) < 3 or not state[1]:
        return None, 0
    return state[1][0], state[2] or 0  # None: a range iterator of Python 3.12 gives the range that is left


def peek(iterator: Any, index: int) -> Any:
    """The ``index``-th next value (0: what ``next`` would give now). Raises IndexError past the end."""
    if type(iterator) is _COUNT:
        value, step = _count_state(iterator)
        for _ in range(index):
            value = value + step
        return value
    sequence, position = _rest(iterator)
    if sequence is None:
        raise IndexError(index)
    return sequence[position + index]


def underlying(iterator: Any) -> Any:
    """The sequence an iterator goes through (a list may be changed meanwhile); None if there is none."""
    return None if type(iterator) is _COUNT else _rest(iterator)[0]
