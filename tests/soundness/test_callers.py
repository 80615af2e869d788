"""Ways to call times kinds of callables: a sample in every run of the tests, all of them under the ``slow`` marker."""

from __future__ import annotations

import pytest

from tests.soundness.generators.callers import CALLEES, WAYS, called

PAIRS = [(way, kind) for way in WAYS for kind in CALLEES]

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.mark.parametrize(("way", "kind"), PAIRS[::47])
def test_a_sample(way: str, kind: str) -> None:
    assert called(way, kind) == []


@pytest.mark.slow
@pytest.mark.parametrize("way", list(WAYS))
def test_all(way: str) -> None:
    assert [line for kind in CALLEES for line in called(way, kind)] == []
