"""Whole shapes that vary: a sample in every run of the tests, more of them when ``slow``."""

from __future__ import annotations

import pytest

from tests.soundness.generators.shapes import SOURCES, USES, shaped

PAIRS = [(source, use) for source in SOURCES for use in USES]

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.mark.parametrize("start", range(2))
def test_a_sample(start: int) -> None:
    assert [line for pair in PAIRS[start * 7 :: 61] if (line := shaped(*pair)) is not None] == []


@pytest.mark.slow
@pytest.mark.parametrize("part", range(2))
def test_more(part: int) -> None:
    assert [line for pair in PAIRS[part::2] if (line := shaped(*pair)) is not None] == []
