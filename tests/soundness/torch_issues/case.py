"""A program for which a public issue says that torch.compile gives another result than eager mode. Key type: Case."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

Compiled = Literal["wrong", "right", "raises"]
Ours = Literal["found", "right", "eager", "rounding"]

#: A function, and what makes the arguments of a call.
Made = tuple[Callable[..., Any], Callable[[], tuple[Any, ...]]]


@dataclass(frozen=True)
class Case:
    """``compiled``: what torch.compile of torch 2.13 gives on a CPU. ``ours``: what MagPy gives: a difference is ``found``
    before its code is used; its code is ``right``; all calls run in ``eager`` mode; or the difference is ``rounding``, which
    only ``verify strict`` finds. ``calls``: made of one function."""

    issue: int
    wrong: str
    make: Callable[[], Made]
    compiled: Compiled
    ours: Ours
    calls: int

    @property
    def name(self) -> str:
        return f"{self.issue}_{self.make.__name__}"


CASES: list[Case] = []


def case(issue: int, wrong: str, compiled: Compiled = "wrong", ours: Ours = "found", calls: int = 4) -> Callable[[Any], Any]:
    """Adds the decorated function, which makes a new world, to the list of cases."""

    def add(make: Callable[[], Made]) -> Callable[[], Made]:
        CASES.append(Case(issue, wrong, make, compiled, ours, calls))
        return make

    return add
