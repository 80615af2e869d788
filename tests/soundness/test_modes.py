"""Modes and settings, entered, left and left changed: a sample in every run of the tests, all of them when ``slow``."""

from __future__ import annotations

import pytest

from tests.soundness.generators.modes import BODIES, MODES, SETTINGS, WHERE, entered, left

TRIPLES = [(mode, where, body) for mode in MODES for where in WHERE for body in BODIES]

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.mark.parametrize("start", range(4))
def test_a_sample(start: int) -> None:
    assert [line for triple in TRIPLES[start * 11 :: 47] if (line := entered(*triple)) is not None] == []


@pytest.mark.slow
def test_all() -> None:
    assert [line for triple in TRIPLES if (line := entered(*triple)) is not None] == []


@pytest.mark.parametrize("name", list(SETTINGS))
def test_a_setting_that_stays(name: str) -> None:
    assert left(name) is None
