"""Random plans of threads (``generators/threads.py``): some in every run, the same ones; the search tries others."""

from __future__ import annotations

import random
import threading

import pytest

from tests.soundness.generators.threads import OPS, Plan, Shared, drawn, together


@pytest.mark.parametrize("seed", range(20))
def test_a_plan(seed: int) -> None:
    assert together(drawn(random.Random(seed))) is None


@pytest.mark.parametrize("op", OPS)
def test_an_operation_in_plain_python(op: str) -> None:
    """The state at the end does not depend on the order of the threads."""
    plan: Plan = tuple(f"beside: {op}, append twice, own slot" for _ in range(4))
    assert together(plan) is None


def test_what_depends_on_the_others_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def counts_threads(s: Shared, i: int) -> None:
        s.slots[i] = max(s.slots[i], threading.active_count())

    monkeypatch.setitem(OPS, "own slot", counts_threads)
    assert "slots" in str(together(("beside: own slot", "beside: own slot")))
