"""Training steps whose optimizer and model change: a sample in every run of the tests, a tenth of them when ``slow``,
all by ``python -m tests.soundness.generators.training``."""

from __future__ import annotations

import pytest

from tests.soundness.generators.training import CHANGES, OPTIMIZERS, STYLES, trained

TRIPLES = [(optimizer, style, change) for optimizer in OPTIMIZERS for style in STYLES for change in CHANGES]

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.mark.parametrize("start", range(4))
def test_a_sample(start: int) -> None:
    assert [line for triple in TRIPLES[start * 101 :: 1103] if (line := trained(*triple)) is not None] == []


@pytest.mark.slow
@pytest.mark.parametrize("optimizer", list(OPTIMIZERS))
def test_many(optimizer: str) -> None:
    chosen = [triple for triple in TRIPLES[::11] if triple[0] == optimizer]
    assert [line for triple in chosen if (line := trained(*triple)) is not None] == []
