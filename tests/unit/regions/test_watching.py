"""Windows of calls show whether compiled code is worth looking at short calls."""

from __future__ import annotations

import pytest

from magpy_core.regions.timing.observed_windows import ObservedWindows


def added(watching: ObservedWindows, pairs: int, compiled: float, plain: float, noise: float = 0.0) -> int:
    """How many pairs were wanted, of ``pairs``."""
    watching.is_wanted("code")
    for n in range(pairs):
        if not watching.is_wanted("code"):
            return n
        drift = 1 + n  # of both: each is compared with its neighbour
        watching.add(drift * compiled * (1 + noise * (n % 2)), drift * plain)
    return pairs


@pytest.mark.parametrize(("compiled", "pays"), [(2.0, False), (0.5, True)])
def test_a_clear_difference_is_known_soon(compiled: float, pays: bool) -> None:
    watching = ObservedWindows()
    assert added(watching, 100, compiled, 1.0) == 6
    assert watching.pays is pays


@pytest.mark.parametrize(("compiled", "pays"), [(0.99, False), (0.9, True)])
def test_what_is_unclear_is_decided_in_the_end(compiled: float, pays: bool) -> None:
    watching = ObservedWindows()
    assert added(watching, 100, compiled, 1.0, noise=0.15) == 24
    assert watching.pays is pays


def test_other_code_is_compared_anew_from_its_second_window_on() -> None:
    watching = ObservedWindows()
    added(watching, 100, 2.0, 1.0)
    assert watching.pays is False
    assert not watching.is_wanted("other code") and watching.pays is None
    assert watching.is_wanted("other code") and watching.plain == []
    assert watching.lost == (3.5, 7.0), "findings on what is given up still say why"
