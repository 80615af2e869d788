"""The corpus with its functions cut at random places: nothing is lost or doubled between one stretch and the next."""

from __future__ import annotations

import pytest

from tests.soundness.cut_campaign import campaign


@pytest.mark.parametrize(("calls", "seed"), [(240, 5), pytest.param(2000, 4, marks=pytest.mark.slow)])
def test_cut_programs_do_what_they_did(calls: int, seed: int) -> None:
    differences, total = campaign(calls, seed)
    assert differences == []
    assert total["replays"] > total["calls"] // 12, total
