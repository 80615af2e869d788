"""Ways to raise times ways to deal with it: a sample in every run of the tests, all of them when ``slow``."""

from __future__ import annotations

import pytest
import torch

import magpy_core
from tests.soundness.generators.exceptions import HANDLES, RAISES, raised

PAIRS = [(how, handled) for how in RAISES for handled in HANDLES]

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.mark.parametrize("start", range(4))
def test_a_sample(start: int) -> None:
    assert [line for pair in PAIRS[start * 7 :: 29] if (line := raised(*pair)) is not None] == []


@pytest.mark.slow
def test_all() -> None:
    assert [line for pair in PAIRS if (line := raised(*pair)) is not None] == []


def test_a_replay_does_not_raise() -> None:
    """The program raises itself: the traceback ends in its own lines, and what came before is written once."""
    calls: list[int] = []
    held = torch.zeros(1)

    def region(x: torch.Tensor) -> torch.Tensor:
        calls.append(1)
        held.add_(1)
        if x.sum() > 0:
            raise ValueError("positive")
        return x * 2

    compiled = magpy_core.compile(region, backend="eager")
    for call, sign in enumerate((1, 1, -1, 1, -1, 1)):
        if sign < 0:
            assert compiled(-torch.ones(1)).item() == -2
        else:
            with pytest.raises(ValueError, match="positive") as error:
                compiled(torch.ones(1))
            assert error.traceback[-1].name == "region"
        assert len(calls) == held.item() == call + 1
    assert all(capture.is_complete for capture in magpy_core.captures(compiled))
