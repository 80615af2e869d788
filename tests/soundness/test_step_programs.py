"""Training steps of many kinds as one region: every optimizer and schedule of torch, and what else stands in steps."""

from __future__ import annotations

import pytest

from tests.soundness.step_programs import STEPS
from tests.soundness.test_steps import check


def test_there_are_many() -> None:
    assert len(STEPS) >= 150


@pytest.mark.parametrize("name", STEPS)
def test_eager(name: str) -> None:
    check(STEPS[name], "eager")


@pytest.mark.slow
@pytest.mark.parametrize("name", STEPS)
def test_aot_eager(name: str) -> None:
    check(STEPS[name], "aot_eager")
