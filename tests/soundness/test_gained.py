"""Special methods that come and go: a sample in every run of the tests, a tenth of them when
``slow``, all by ``python -m tests.soundness.generators.gained``."""

from __future__ import annotations

import pytest

from tests.soundness.generators.gained import TRIPLES, gained

# what was wrong once
KNOWN = [
    ("__add__", "r tensor", "gained"), ("__radd__", "tensor +", "by the base"), ("__eq__", "in list", "lost"),
    ("__hash__", "hash", "gained"), ("__torch_function__", "add tensors", "gained"), ("__get__", "held read", "gained"),
    ("__set__", "held", "by the base"),
]  # fmt: skip

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.mark.parametrize("start", range(2))
def test_a_sample(start: int) -> None:
    assert [line for triple in TRIPLES[start * 83 :: 463] if (line := gained(*triple)) is not None] == []


def test_what_was_wrong_once() -> None:
    assert [line for triple in KNOWN if (line := gained(*triple)) is not None] == []


@pytest.mark.slow
@pytest.mark.parametrize("start", range(10))
def test_many(start: int) -> None:
    assert [line for triple in TRIPLES[start::97] if (line := gained(*triple)) is not None] == []
