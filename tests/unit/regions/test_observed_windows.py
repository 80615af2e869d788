"""Windows of calls show whether compiled code is worth looking at short calls."""

from __future__ import annotations

import pytest

from magpy_core.regions.timing.observed_windows import ObservedWindows


def added(watching: ObservedWindows, pairs: int, compiled: float, plain: float, noise: float = 0.0) -> int:
    """How many pairs were wanted, of ``pairs``."""
    watching.next_window("code")
    for n in range(pairs):
        if not watching.next_window("code"):
            return n
        drift = 1 + n  # of both: each is compared with its neighbour
        watching.add(drift * compiled * (1 + noise * (n % 2)), drift * plain)
    return pairs


@pytest.mark.parametrize(("compiled", "pays"), [(2.0, False), (0.5, True)])
def test_a_clear_difference_is_known_soon(compiled: float, pays: bool) -> None:
    watching = ObservedWindows()
    assert added(watching, 100, compiled, 1.0) == 6
    assert watching.compared.pays is pays


@pytest.mark.parametrize(("compiled", "pays"), [(0.99, False), (0.9, True)])
def test_what_is_unclear_is_decided_in_the_end(compiled: float, pays: bool) -> None:
    watching = ObservedWindows()
    assert added(watching, 100, compiled, 1.0, noise=0.15) == 24
    assert watching.compared.pays is pays


def test_other_code_is_compared_anew_from_its_second_window_on() -> None:
    watching = ObservedWindows()
    added(watching, 100, 2.0, 1.0)
    assert watching.compared.pays is False
    assert not watching.next_window("other code") and watching.compared.pays is None
    assert watching.next_window("other code") and watching.compared.eager == []
    assert watching.lost == (3.5, 7.0), "findings on what is given up still say why"
