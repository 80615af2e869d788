"""Attributes kept in dicts in uncommon ways: a sample in every run of the tests, all of them under the ``slow`` marker."""

from __future__ import annotations

import pytest

from tests.soundness.generators.attribute_dicts import CHANGES, CLASSES, USES, used

CASES = [(name, use, change) for use in USES for change in CHANGES for name in CLASSES]

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.mark.parametrize(("name", "use", "change"), CASES[::89])
def test_a_sample(name: str, use: str, change: str) -> None:
    assert used(name, use, change) is None


@pytest.mark.slow
@pytest.mark.parametrize("name", CLASSES)
def test_all(name: str) -> None:
    assert [line for n, use, change in CASES if n == name and (line := used(n, use, change)) is not None] == []
