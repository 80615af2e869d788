"""Ways in which training steps keep state: compiled and plain, they agree, and captures serve those that can be served."""

from __future__ import annotations

import itertools
import re
from pathlib import Path

import pytest
import torch

from tests.programs.patterns import KINDS, PATTERNS, Pattern
from tests.programs.patterns.measure import measure
from tests.programs.patterns.not_yet import NOT_YET

_SHARE = 4

_NAMES = [pytest.param(name, marks=[] if k % _SHARE == 0 else pytest.mark.slow, id=name) for k, name in enumerate(PATTERNS)]


def test_there_are_many_of_each_kind() -> None:
    counts = {kind: sum(p.kind == kind for p in PATTERNS.values()) for kind in KINDS}
    assert len(PATTERNS) >= 165 and counts["numbers"] >= 50 and min(counts.values()) >= 20, counts
    assert set(NOT_YET) <= set(PATTERNS)


@pytest.mark.parametrize("name", _NAMES)
def test_pattern(name: str) -> None:
    measured = measure(PATTERNS[name])
    assert not measured.wrong
    if name in NOT_YET:
        assert not measured.is_good, f"captures serve {name} now: remove it from NOT_YET"
    else:
        why = [*measured.recompiles, *measured.findings]
        assert measured.is_good, f"{measured.captures} captures, {measured.hits} hits: {why}"


@pytest.mark.parametrize("what", ["result", "state", "output", "stream"])
def test_a_difference_is_found(what: str) -> None:
    """A pattern whose second world is another one than its first."""
    worlds = itertools.count()

    def make() -> tuple[object, object]:
        other = next(worlds)

        def step(x: torch.Tensor) -> object:
            if what == "output":
                print(other)
            elif what == "stream" and other:
                torch.rand(1)
            return x.sum() + (other if what == "result" else 0)

        return step, lambda: torch.tensor(-0.0 if what == "state" and other else 0.0)

    assert len(measure(Pattern("differs", "numbers", make)).wrong) == 1  # type: ignore[arg-type]


def test_the_page_names_what_is_not_served() -> None:
    page = (Path(__file__).parents[2] / "docs" / "reference" / "patterns.md").read_text(encoding="utf-8")
    before, _, not_served = page.partition("## Not served yet")
    assert set(re.findall(r"`(\w+)`", not_served)) - {"match"} == set(NOT_YET)
    assert f"{len(PATTERNS) - len(NOT_YET)} of {len(PATTERNS)}" in before
