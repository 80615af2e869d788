"""Ledger: what all trackers of one recording write to. Key types: Ledger, Learned, Decision, Output.

A tracker keeps to itself what it alone needs. What a capture is made of stands here, until `recording.trace` freezes it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch

from magpy_core.findings import Location
from magpy_core.opgraph.operator_graph import OperatorGraph
from magpy_core.opgraph.scalars import ScalarTable, Sym
from magpy_core.refgraph.graph import RefGraph
from magpy_core.refgraph.source import Source
from magpy_core.refgraph.source_table import SourceTable


@dataclass
class Learned:
    """What earlier calls of the region showed: access paths of numbers that vary, dimensions that vary."""

    numbers: set[str] = field(default_factory=set)
    dims: dict[str, set[int]] = field(default_factory=dict)
    exact: set[str] = field(default_factory=set)
    set_up: set[str] = field(default_factory=set)
    """What earlier calls did that no replay can, and that a program may do once, to set itself up."""
    twice: bool = False
    """Whether a result of the region was differentiated twice."""
    dynamic: bool = False
    """Whether sizes and integers among the arguments vary from the first capture on (`recording.dynamic`)."""
    marks: bool = True
    """Whether marked dimensions count."""
    assumed: set[str] = field(default_factory=set)
    """What is among the numbers and dimensions though no call has shown it: it may be too much to ask."""

    def withdraw(self) -> bool:
        """Assume no more than what calls have shown; whether more was assumed."""
        for path in self.assumed:
            self.numbers.discard(path)
            self.dims.pop(path, None)
        assumed, self.assumed, self.dynamic, self.marks = bool(self.assumed), set(), False, False
        return assumed


@dataclass
class Decision:
    """The program's path depended on a value only the graph knows: a cut after ``last_node``.
    ``asserted``: no cut, because on the other side the program only raises, or because the region must be one graph. It is
    checked when the whole graph has run, and everything is undone if it went the other way.
    """

    sym: Sym
    outcome: Any
    last_node: Any
    site: Any
    asserted: bool = False
    condition: tuple[Any, ...] | None = None
    """The operations that decide, if they take only the graph's inputs: no cut, they run ahead of the graph."""
    place: Location | None = None  # of the finding that reports a cut


@dataclass
class Output:
    """One call with a visible effect, to be repeated in order: ``fn(*args, **kwargs)``."""

    what: str  # "print" | "log" | "warn"
    payload: Any
    site: Any


@dataclass
class Ledger:
    """Shared by the trackers of one recording. ``undo`` runs when the call has returned, last first."""

    learned: Learned
    scalars: ScalarTable
    fullgraph: bool = False
    ops: OperatorGraph = field(init=False)  # set when the parts that it reports to are there
    refgraph: RefGraph = field(default_factory=RefGraph)
    decisions: list[Decision] = field(default_factory=list)
    outputs: list[Output] = field(default_factory=list)
    draws: list[Source] = field(default_factory=list)  # random numbers drawn from Python's and NumPy's streams, in order
    undo: list[Callable[[], None]] = field(default_factory=list)
    tensor_writes: list[tuple[torch.Tensor, Source, Any]] = field(default_factory=list)
    field_writes: list[tuple[torch.Tensor, str, Any, Any]] = field(default_factory=list)
    with_history: set[str] = field(default_factory=set)  # paths of tensors from outside that autograd saw changing

    @property
    def sources(self) -> SourceTable:
        return self.refgraph.sources
