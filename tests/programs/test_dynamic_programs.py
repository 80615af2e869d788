"""Programs whose control flow depends on data: compiled and plain, they agree exactly at every call, on every path."""

from __future__ import annotations

import pytest

from tests.programs.dynamic import PROGRAMS
from tests.programs.dynamic_pair import Pair
from tests.soundness.harness.cuts import without_trials

_QUICK, _MANY = 12, 100
_SMALL = ("early_exit_resnet", "moe_top1", "skipnet_feedforward", "tree_lstm")


def _check(name: str, calls: int, backend: str = "eager") -> Pair:
    pair = Pair(name, backend)
    try:
        for i in range(calls):
            pair.check(i)
    finally:
        pair.uncompile()
    assert len(set(pair.taken)) >= 2, f"{name} took one path only"
    return pair


def test_there_are_many() -> None:
    assert len(PROGRAMS) >= 24


@pytest.mark.parametrize("name", _SMALL)
def test_some_calls(name: str) -> None:
    _check(name, _QUICK)


@pytest.mark.slow
@pytest.mark.parametrize("name", PROGRAMS)
def test_many_calls_on_every_path(name: str) -> None:
    """All lines of the program run in these calls, so that no branch is there in vain."""
    with without_trials():
        assert not _check(name, _MANY).paths.never_ran()
