"""Tracker: what every part of a recording holds. Key types: Parts, Tracker."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from magpy_core.recording.journal import Journal
from magpy_core.recording.ledger import Ledger

if TYPE_CHECKING:
    from magpy_core.recording.age import Age
    from magpy_core.recording.arrays import Arrays
    from magpy_core.recording.call_stack import CallStack
    from magpy_core.recording.decisions import Decisions
    from magpy_core.recording.groups import Access, Calls, Facts, Nodes
    from magpy_core.recording.imports import Imports
    from magpy_core.recording.interference import Interference
    from magpy_core.recording.lifetimes import Lifetimes
    from magpy_core.recording.modules import ModuleCalls
    from magpy_core.recording.numbers import Numbers
    from magpy_core.recording.operator_host import OperatorHost
    from magpy_core.recording.output import OutputCalls
    from magpy_core.recording.pauses import Pauses


class Parts:
    """The parts of one recording, as they reach each other: set once all are made (`groups.build`)."""

    stack: CallStack
    pauses: Pauses
    age: Age
    arrays: Arrays
    decisions: Decisions
    numbers: Numbers
    lifetimes: Lifetimes
    imports: Imports
    host: OperatorHost
    output: OutputCalls
    modules: ModuleCalls
    interference: Interference
    facts: Facts
    access: Access
    calls: Calls
    nodes: Nodes


@dataclass(eq=False)
class Tracker(Parts):
    """One part of a recording. It owns its fields; what a capture is made of goes to the ledger, refusals to the journal."""

    ledger: Ledger
    journal: Journal

    def __post_init__(self) -> None:
        self.refgraph = self.ledger.refgraph
        self.sources = self.ledger.sources
