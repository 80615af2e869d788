"""Ledger: the data shared by all trackers of one recording. Key types: Ledger, Learned, Decision, Output.

Data that only one tracker needs is in its own fields. The ledger has the contents of a capture, until `recording.trace`
freezes them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch

from magpy_core.findings import Location
from magpy_core.monitor.events import MaybeSite
from magpy_core.opgraph.operator_graph import OperatorGraph
from magpy_core.opgraph.scalars import ScalarTable, Sym
from magpy_core.refgraph.clocks import ClockRead
from magpy_core.refgraph.graph import RefGraph
from magpy_core.refgraph.source import Source
from magpy_core.refgraph.source_table import SourceTable


@dataclass
class Learned:
    """Facts from earlier calls of the region: access paths of dynamic numbers, dynamic dimensions."""

    numbers: set[str] = field(default_factory=set)
    dims: dict[str, set[int]] = field(default_factory=dict)
    exact: set[str] = field(default_factory=set)
    set_up: set[str] = field(default_factory=set)
    """Messages about actions of earlier calls that replay can't repeat, and that a program may do once."""
    scheduled: set[str] = field(default_factory=set)
    """Keys of numbers in groups of an optimizer's parameters that the region's code sets, at least in some calls."""
    twice: bool = False
    """Whether a result of the region was differentiated twice."""
    dynamic: bool = False
    """Whether sizes and integers among the arguments are dynamic from the first capture on (`recording.dynamic`)."""
    holds: bool = True
    """Whether compiled graphs with a backward pass hold their writes until the path is known, instead of being cut."""
    marks: bool = True
    """Whether marked dimensions are dynamic."""
    assumed: set[str] = field(default_factory=set)
    """Paths of numbers and dimensions that are assumed dynamic although no call has shown it; this may prevent a capture."""

    def withdraw(self) -> bool:
        """Drop all assumptions that no call has shown; returns whether there were any."""
        for path in self.assumed:
            self.numbers.discard(path)
            self.dims.pop(path, None)
        assumed, self.assumed, self.dynamic, self.marks = bool(self.assumed), set(), False, False
        return assumed


@dataclass
class Decision:
    """The program's path depends on a value that only the graph computes: a cut after ``last_node``.
    ``asserted``: no cut, because the other branch only raises, or because the region must be one graph. It is checked after
    the whole graph has run, and everything is undone if the outcome differs.
    """

    sym: Sym
    outcome: Any
    last_node: Any
    site: MaybeSite
    asserted: bool = False
    condition: tuple[Any, ...] | None = None
    """The operations that compute the decision, if they need only the graph's inputs: no cut, they run before the graph."""
    place: Location | None = None  # of the finding that reports a cut
    held: bool = False
    """Compilers need not cut the graph: all that it writes depends on the decision."""


@dataclass
class Fresh:
    """What each call reads anew. ``draws``: random numbers drawn from Python's and NumPy's streams, in order. ``clocks``:
    what clocks show before the first operation; ``late_clocks``: after one. ``arrays``: NumPy arrays whose numbers vary;
    ``array_writes``: numbers stored into them (array, place, number, site)."""

    draws: list[Source] = field(default_factory=list)
    clocks: list[Source] = field(default_factory=list)
    late_clocks: list[ClockRead] = field(default_factory=list)
    arrays: list[Source] = field(default_factory=list)
    array_writes: list[tuple[Any, tuple[Any, ...], Any, Any]] = field(default_factory=list)


@dataclass
class Output:
    """One call with a visible effect, to be repeated in order: ``fn(*args, **kwargs)``."""

    what: str  # "print" | "log" | "warn"
    payload: Any
    site: MaybeSite


@dataclass
class Ledger:
    """Shared by the trackers of one recording. ``undo`` runs after the call, in reverse order."""

    learned: Learned
    scalars: ScalarTable
    fullgraph: bool = False
    ops: OperatorGraph = field(init=False)  # set after the trackers that it reports to are created
    refgraph: RefGraph = field(default_factory=RefGraph)
    decisions: list[Decision] = field(default_factory=list)
    outputs: list[Output] = field(default_factory=list)
    fresh: Fresh = field(default_factory=Fresh)
    undo: list[Callable[[], None]] = field(default_factory=list)
    tensor_writes: list[tuple[torch.Tensor, Source, Any]] = field(default_factory=list)
    field_writes: list[tuple[torch.Tensor, str, Any, Any]] = field(default_factory=list)
    other_effects: int = 0
    """How often the region has set a number of a class or a context variable, or advanced a counter."""
    context_writes: list[tuple[Any, Any, Any]] = field(default_factory=list)  # context variable, value, site
    with_history: set[str] = field(default_factory=set)  # paths of tensors from outside that were written under autograd

    @property
    def draws(self) -> list[Source]:
        return self.fresh.draws

    @property
    def sources(self) -> SourceTable:
        return self.refgraph.sources
