"""Looking into iterators without advancing them."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

import pytest

from magpy_core.refgraph.iterators import can_peek, peek, underlying

MAKERS: list[Callable[[], Iterator[Any]]] = [
    lambda: iter([1, 2, 3, 4]),
    lambda: iter((1, 2, 3, 4)),
    lambda: iter(range(3, 11, 2)),
    lambda: iter(range(2**70, 2**70 + 4)),
    lambda: iter("abcd"),
    lambda: iter("aécd"),
    lambda: itertools.count(5),
    lambda: itertools.count(1.5, 0.25),
    lambda: itertools.count(-3, -2),
]


@pytest.mark.parametrize("make", MAKERS)
def test_peek_says_what_next_gives(make: Callable[[], Iterator[Any]]) -> None:
    iterator = make()
    assert can_peek(iterator)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for left in (3, 2, 1, 0):
            ahead = [peek(iterator, k) for k in range(left + 1)]
            again = [peek(iterator, k) for k in range(left + 1)]
            assert ahead == again and ahead[0] == next(iterator)


@pytest.mark.parametrize("make", [m for m in MAKERS if not isinstance(m(), itertools.count)])
def test_past_the_end(make: Callable[[], Iterator[Any]]) -> None:
    iterator = make()
    with pytest.raises(IndexError):
        peek(iterator, 4)
    list(iterator)
    with pytest.raises(IndexError):
        peek(iterator, 0)


@pytest.mark.parametrize("iterator", [itertools.count(Fraction(1, 2)), map(abs, [1]), (x for x in [1]), iter({1: 2})])
def test_what_cannot_be_looked_into(iterator: Iterator[Any]) -> None:
    assert not can_peek(iterator)


def test_the_list_under_an_iterator() -> None:
    items = [1, 2]
    assert underlying(iter(items)) is items and underlying(itertools.count()) is None
