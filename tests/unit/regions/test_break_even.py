"""The step behind which a run has saved more than it has waited, found without going through all steps."""

from __future__ import annotations

from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from magpy_core.findings import STEP_KINDS
from magpy_core.regions.reports.step_report import _break_even
from magpy_core.regions.timing.steps import Steps

COMPILED = STEP_KINDS.index("compiled")


def balanced(kinds: list[str], waits: list[int], saved: int) -> tuple[Steps, int | None]:
    """Steps of these kinds, each waited one of ``waits`` seconds long; and the step by going through all of them."""
    steps, balance, reached = Steps(), Fraction(0), None
    left = iter(waits)
    for number, kind in enumerate(kinds, 1):
        steps.kinds.append(STEP_KINDS.index(kind))
        if kind == "waited":
            wait = next(left, 1)
            steps.waited.append((number, float(wait)))
            balance -= wait
        balance += saved if kind == "compiled" else 0
        reached = None if balance <= 0 else reached or number
    return steps, reached


@given(st.lists(st.sampled_from(STEP_KINDS), max_size=60), st.lists(st.integers(1, 9), max_size=60), st.integers(-2, 4))
def test_it_is_the_one_that_going_through_all_steps_finds(kinds: list[str], waits: list[int], saved: int) -> None:
    steps, expected = balanced(kinds, waits, saved)
    assert _break_even(steps, float(saved)) == expected


def test_a_later_wait_moves_it() -> None:
    steps, _ = balanced(["waited", *["compiled"] * 5, "waited", *["compiled"] * 5], [3, 8], 1)
    assert _break_even(steps, 1.0) is None
    steps, _ = balanced(["waited", *["compiled"] * 5, "waited", *["compiled"] * 9], [3, 8], 1)
    assert _break_even(steps, 1.0) == 14
