"""BasicTracker: what every part of a recording holds. Key type: BasicTracker."""

from __future__ import annotations

from dataclasses import dataclass

from magpy_core.recording.journal import Journal
from magpy_core.recording.ledger import Ledger


@dataclass(eq=False)
class BasicTracker:
    """One part of a recording. It owns its fields; what a capture is made of goes to the ledger, refusals to the journal."""

    ledger: Ledger
    journal: Journal

    def __post_init__(self) -> None:
        self.refgraph = self.ledger.refgraph
        self.sources = self.ledger.sources
