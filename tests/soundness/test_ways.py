"""Ways to write and read the same state: a sample in every run of the tests, all of them when ``slow``."""

from __future__ import annotations

import pytest

from tests.soundness.generators.ways import every, through

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.mark.parametrize("start", range(4))
def test_a_sample(start: int) -> None:
    assert [line for way in every()[start * 17 :: 89] if (line := through(*way)) is not None] == []


@pytest.mark.slow
@pytest.mark.parametrize("part", range(4))
def test_all(part: int) -> None:
    assert [line for way in every()[part::4] if (line := through(*way)) is not None] == []
