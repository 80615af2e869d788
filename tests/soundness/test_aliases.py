"""Arguments that share memory, written in place: a few regions in every run, all under the ``slow`` marker."""

from __future__ import annotations

import pytest

from tests.soundness.generators.aliases import RESULTS, WRITES, aliased

PAIRS = [(write, result) for write in WRITES for result in RESULTS]

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.mark.parametrize(("write", "result"), PAIRS[::23])
def test_eager(write: str, result: str) -> None:
    assert aliased(write, result, "eager", 1) is None


@pytest.mark.parametrize(("write", "result"), [("foreach", "arguments"), ("augmented", "views"), ("by_strides", "views")])
def test_aot_eager(write: str, result: str) -> None:
    assert aliased(write, result, "aot_eager", 1) is None


@pytest.mark.slow
@pytest.mark.parametrize("write", list(WRITES))
def test_all(write: str) -> None:
    assert [d for result in RESULTS if (d := aliased(write, result, "eager", 2)) is not None] == []
