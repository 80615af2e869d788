"""Tracker: the base class of all parts of a recording. Key type: Tracker."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, dataclass_transform

if TYPE_CHECKING:
    from magpy_core.recording.context import Context


@dataclass_transform(eq_default=False, field_specifiers=(field,))
class _Dataclass:
    """Makes each subclass a dataclass."""

    def __init_subclass__(cls) -> None:
        dataclass(eq=False)(cls)


class Tracker(_Dataclass):
    """One part of a recording. It owns its fields, and reaches all others through the context. What a capture contains goes
    to the ledger, refusals to the journal."""

    context: Context

    def __post_init__(self) -> None:
        self.ledger, self.journal = self.context.ledger, self.context.journal
        self.refgraph, self.sources = self.ledger.refgraph, self.ledger.sources
