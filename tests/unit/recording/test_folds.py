"""Sums and extremes of numbers of which some vary."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

import pytest
import torch

from magpy_core.recording.calls.folds import Folds
from magpy_core.refgraph import folds
from tests.unit.engine_pair import Pair
from tests.unit.recording.help import World

CALLS = 9
VALUES: list[Any] = [
    lambda: [],
    lambda: [1.5, 0.25],
    lambda: deque([1.5], maxlen=3),
    lambda: deque([1.5, 2.5, 0.5], maxlen=3),
    lambda: deque([1.5]),
]
USES: list[Callable[[Any, torch.Tensor], Any]] = [
    lambda values, x: sum(values) / len(values),
    lambda values, x: max(values) - min(values),
    lambda values, x: x * sum(values),
    lambda values, x: (max(values), values[-1]),
]


#: From Python 3.12 on, ``sum`` carries rounding errors along, which no graph may do: arithmetic with symbols drops them.
plain_sum = pytest.mark.skipif(not folds.SUM_IS_PLAIN, reason="this Python's sum of floats does not just add them up")


@pytest.mark.parametrize("values", VALUES, ids=range(len(VALUES)))
@pytest.mark.parametrize(
    "use", [pytest.param(use, marks=plain_sum if n in (0, 2) else (), id=str(n)) for n, use in enumerate(USES)]
)
def test_of_what_grows(values: Callable[[], Any], use: Callable[[Any, torch.Tensor], Any]) -> None:
    def world() -> Any:
        kept = values()

        def region(x: torch.Tensor) -> Any:
            kept.append(x.sum().item())
            return use(kept, x)

        return region, kept

    pair = Pair(world).calls(*[(torch.ones(2) * (i % 4 + 0.25),) for i in range(CALLS)])
    assert pair.region.hits >= CALLS - 3


INSIDE: list[Callable[[list[float], int], Any]] = [
    lambda parts, n: sum(parts),
    lambda parts, n: max([*parts, 2.0]),
    lambda parts, n: min(tuple(parts)),
    lambda parts, n: sum(deque(parts)),
    lambda parts, n: sum([n, n, 1]) + max([n]),
    lambda parts, n: sum(v * 2 for v in parts),
    lambda parts, n: max(v * 2 for v in parts),
    lambda parts, n: sum(v for v in [n, n + 1]),
    lambda parts, n: [v / sum(parts) for v in parts],
]


@pytest.mark.parametrize(
    "use", [pytest.param(use, marks=plain_sum if n in (0, 3, 5, 8) else (), id=str(n)) for n, use in enumerate(INSIDE)]
)
def test_of_what_is_made_inside(use: Callable[[list[float], int], Any]) -> None:
    def world() -> Any:
        count = [0]

        def region(x: torch.Tensor) -> Any:
            count[0] += 1
            return use(x.tolist(), count[0])

        return region, count

    assert Pair(world).calls(*[(torch.rand(3) + 0.5,) for _ in range(CALLS)]).counts == (1, CALLS - 1)


@pytest.mark.skipif(folds.SUM_IS_PLAIN, reason="this Python's sum just adds floats up")
def test_a_sum_that_carries_errors_along_is_what_python_makes_it() -> None:
    def world() -> Any:
        kept = [1e100]

        def region(x: torch.Tensor) -> Any:
            kept.append(x.sum().item())
            return sum([*kept, -1e100]), x * sum(x.tolist())

        return region, kept

    Pair(world).calls(*[(torch.rand(2),) for _ in range(CALLS)])


def test_the_number_of_what_is_left() -> None:
    assert folds.fold([1.0, 2.0], ("sum", 1, float)) == 3.0
    assert folds.fold(deque([1.0, 2.0], maxlen=2), ("sum", 1, float)) == 2.0
    assert folds.fold(deque([1.0, 2.0], maxlen=2), ("max", 2, float)) is None
    for values in ([], [1.0, 2], [1.0, True], ["a"]):
        assert folds.fold(values, ("sum", 1, float)) is None


def test_other_calls_are_none() -> None:
    tracker = World().build(Folds)
    for fn, args in ((sum, ([1], 2)), (sum, ({1: 2},)), (len, ([1],)), (max, (1, 2))):
        assert not tracker.makes(None, fn, args, {})
