"""BasicTracker: the base class of all parts of a recording. Key type: BasicTracker."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import dataclass_transform

from magpy_core.recording.journal import Journal
from magpy_core.recording.ledger import Ledger


@dataclass_transform(eq_default=False, field_specifiers=(field,))
class _Dataclass:
    """Makes each subclass a dataclass."""

    def __init_subclass__(cls) -> None:
        dataclass(eq=False)(cls)


class BasicTracker(_Dataclass):
    """One part of a recording. It owns its fields; the contents of a capture go to the ledger, refusals to the journal."""

    ledger: Ledger
    journal: Journal

    def __post_init__(self) -> None:
        self.refgraph = self.ledger.refgraph
        self.sources = self.ledger.sources
