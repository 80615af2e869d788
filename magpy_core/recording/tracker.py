"""Tracker: what every part of a recording holds. Key type: Tracker."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from magpy_core.recording.journal import Journal
from magpy_core.recording.ledger import Ledger

if TYPE_CHECKING:
    from magpy_core.recording.groups import Access, Basics, Calls, Facts, Nodes


@dataclass(eq=False)
class Tracker:
    """One part of a recording. It owns its fields; what a capture is made of goes to the ledger, refusals to the journal. It
    reaches the other parts by their groups, which are filled once all are made."""

    ledger: Ledger
    journal: Journal
    basics: Basics
    facts: Facts
    access: Access
    calls: Calls
    nodes: Nodes

    def __post_init__(self) -> None:
        self.refgraph = self.ledger.refgraph
        self.sources = self.ledger.sources
