"""What tensors tell about themselves: a sample in every run of the tests, all of it when ``slow``."""

from __future__ import annotations

import pytest

from tests.soundness.generators.tensor_state import every, shown

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.mark.parametrize("start", range(4))
def test_a_sample(start: int) -> None:
    assert [line for pair in every()[start * 17 :: 73] if (line := shown(*pair)) is not None] == []


@pytest.mark.slow
@pytest.mark.parametrize("part", range(4))
def test_all(part: int) -> None:
    assert [line for pair in every()[part::4] if (line := shown(*pair)) is not None] == []
