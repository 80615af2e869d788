"""Methods written in C, bound before the region runs: a sample in every run of the tests, all of them when ``slow``."""

from __future__ import annotations

import pytest

from tests.soundness.generators.bound import METHODS, WAYS, bound

PAIRS = [(name, way) for way in WAYS for name in METHODS]

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.mark.parametrize(("name", "way"), PAIRS[::13])
def test_a_sample(name: str, way: str) -> None:
    assert bound(name, way) is None


@pytest.mark.slow
@pytest.mark.parametrize("way", list(WAYS))
def test_all(way: str) -> None:
    assert [line for name in METHODS if (line := bound(name, way)) is not None] == []
