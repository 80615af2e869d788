"""The corpus can fail: bugs planted in the engine are each caught by the program that is there for it."""

from __future__ import annotations

import pytest

from tests.soundness.harness.world import programs
from tests.soundness.planted import BUGS, Bug, hunt

PROGRAMS = {p.name: p for p in programs()}


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name.replace(" ", "_"))
def test_caught(bug: Bug) -> None:
    caught = hunt(bug, [PROGRAMS[name] for name in bug.likely], tries=0)
    assert caught.program, f"`{bug.name}` survives {', '.join(bug.likely)}"


@pytest.mark.parametrize("name", sorted({name for bug in BUGS for name in bug.likely}))
def test_nothing_is_caught_without_a_bug(name: str) -> None:
    """Also: every bug has been taken out again."""
    for bug in BUGS:
        if name in bug.likely:
            caught = hunt(Bug("none", (), change=bug.change, backend=bug.backend), [PROGRAMS[name]], tries=0)
            assert not caught.program, caught.difference
