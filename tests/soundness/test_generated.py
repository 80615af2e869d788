"""Programs written at random, under random changes: a few in every run of the tests, more of them when
``exhaustive``."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.soundness.generators.random_programs.run import try_program

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.mark.parametrize("seed", range(6))
def test_a_few(seed: int) -> None:
    assert try_program(seed, 1, Counter())


@pytest.mark.slow
@pytest.mark.exhaustive
def test_more_and_how_many_are_captured() -> None:
    total: Counter[str] = Counter()
    assert [seed for seed in range(100, 250) if not try_program(seed, 2, total)] == []
    assert total["programs"] > 120
    # The expressions deliberately include much that no graph can hold (copied tensors, arrays), which refuses a program.
    assert total["programs captured"] > total["programs"] // 10
