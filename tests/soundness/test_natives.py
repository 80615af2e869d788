"""Native callables over objects from outside: a sample in every run of the tests, all of them under the ``slow`` marker."""

from __future__ import annotations

import pytest

from tests.soundness.generators.natives import CALLED, OBJECTS, WALKS, walked

NAMES = [(called, walk, kind) for called in CALLED for walk in WALKS for kind in OBJECTS]

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.mark.parametrize(("called", "walk", "kind"), NAMES[::397])
def test_a_sample(called: str, walk: str, kind: str) -> None:
    assert not walked(called, walk, kind)


@pytest.mark.slow
@pytest.mark.parametrize("called", list(CALLED))
def test_all(called: str) -> None:
    assert [line for walk in WALKS for kind in OBJECTS if (line := walked(called, walk, kind))] == []
