"""Numbers that follow from tensors' data: a sample in every run of the tests, all of them when ``slow``."""

from __future__ import annotations

import pytest

from tests.soundness.generators.numbers_of_data import SOURCES, USES, counted

PAIRS = [(source, use) for source in SOURCES for use in USES]

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.mark.parametrize("start", range(4))
def test_a_sample(start: int) -> None:
    assert [line for pair in PAIRS[start * 7 :: 97] if (line := counted(*pair)) is not None] == []


@pytest.mark.slow
def test_all() -> None:
    assert [line for pair in PAIRS if (line := counted(*pair)) is not None] == []
