"""Numbers from outside that vary: a sample in every run of the tests, more of them when ``slow``."""

from __future__ import annotations

import pytest

from tests.soundness.generators.numbers import TRIPLES, numbered

pytestmark = pytest.mark.filterwarnings("ignore")

# `min(k, 3)` has the type of the one it gives: the type that the program saw was the recorded one
MIXED = ["at most", "at least", "at most, mixed", "between", "least of many"]


@pytest.mark.parametrize("source", MIXED)
def test_the_type_of_the_least_number(source: str) -> None:
    lines = [numbered(kind, source, use) for kind in ("float", "both") for use in ("type", "match", "itself", "dtype")]
    assert [line for line in lines if line is not None] == []


def test_a_sample() -> None:
    assert [line for triple in TRIPLES[3::331] if (line := numbered(*triple)) is not None] == []


@pytest.mark.slow
def test_more() -> None:
    assert [line for triple in TRIPLES[::17] if (line := numbered(*triple)) is not None] == []
