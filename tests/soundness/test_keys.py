"""Keys that hash and compare in ways of their own: a sample in every run of the tests, a quarter of them when
``slow``, all by ``python -m tests.soundness.generators.keys``."""

from __future__ import annotations

import pytest

from tests.soundness.generators.keys import KEYS, OPS, keyed

TRIPLES = [(kind, which, op) for kind in KEYS for op in OPS for which in ("same", "equal", "missing")]

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.mark.parametrize("start", range(4))
def test_a_sample(start: int) -> None:
    assert [line for triple in TRIPLES[start * 7 :: 389] if (line := keyed(*triple)) is not None] == []


@pytest.mark.slow
@pytest.mark.parametrize("kind", list(KEYS))
def test_many(kind: str) -> None:
    assert [line for triple in TRIPLES[::4] if triple[0] == kind and (line := keyed(*triple)) is not None] == []
