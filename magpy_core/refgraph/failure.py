"""Failure: the description of a guard that does not hold. Key type: Failure."""

from __future__ import annotations

from dataclasses import dataclass

from magpy_core.findings import Location
from magpy_core.refgraph.source import Source


@dataclass(frozen=True)
class Failure:
    """One guard that does not hold. ``dims``: the dimensions whose sizes differ, if nothing else differs."""

    code: str
    name: str
    old: str
    new: str
    location: Location | None = None
    source: Source | None = None
    number: bool = False  # a number changed into another number of the same type: it can become symbolic
    dims: tuple[int, ...] = ()
    other_parameter: bool = False  # the size of a parameter differs: it is that of another module
    branches: tuple[Location, ...] = ()  # of which one went the other way, where all guards hold
    path: tuple[Location, ...] = ()  # to a read in a library: ``location`` is the user's call into it

    @property
    def shown_new(self) -> str:
        """The new value after the old one, also where both have the same text."""
        return "another object" if self.new == self.old else self.new

    @property
    def message(self) -> str:
        return f"`{self.name}` was {self.old} when this was compiled and is {self.new} now."


UNASSIGNED = "unassigned"
"""In place of a value: a variable that has none yet."""
