"""Steps of several optimizers belong together."""

from __future__ import annotations

import pytest

from magpy_core.regions.timing.optimizer_cycle import OptimizerCycle


@pytest.mark.parametrize(
    ("steps", "lengths"),
    [
        ("AAAA", [1, 1, 1, 1]),
        ("DG" * 20, [2]),
        ("DDDDDG" * 10, [6]),
        ("GDDDDD" * 10, [6]),
        ("ABC" * 20, [3]),
        ("A" * 30 + "DG" * 30, [2]),
        ("DG" * 30 + "A" * 30, [1]),
        ("ABRRRRRR", [1, 3, 1, 1, 1, 1]),
        ("A" * 3 + "R" * 5, [1, 3, 1, 1]),
    ],
)
def test_steps_up_to_the_next_one_of_the_same_optimizer(steps: str, lengths: list[int]) -> None:
    cycle, seen = OptimizerCycle(), []
    for step in steps:
        cycle.add(1.0, 0, 1, waited=False)
        if cycle.ends_with(step):
            seen.append(cycle.steps)
            cycle.restart()
    assert seen[-len(lengths) :] == lengths


def test_what_the_steps_were() -> None:
    cycle = OptimizerCycle()
    assert cycle.kind == "plain", "no region with compiled code was called"
    cycle.add(1.0, 1, 0, waited=False)
    cycle.add(2.0, 0, 0, waited=False)
    assert (cycle.kind, cycle.steps, cycle.seconds) == ("plain", 2, 3.0)
    cycle.add(1.0, 0, 1, waited=False)
    assert cycle.kind == ""
    cycle.restart()
    cycle.add(1.0, 0, 1, waited=True)
    assert cycle.kind == ""
