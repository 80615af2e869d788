"""Node: one object from outside, its source and the writes to it. Key type: Node."""

from __future__ import annotations

import operator
from dataclasses import dataclass, field
from typing import Any

from magpy_core.findings import secrets
from magpy_core.refgraph import kinds
from magpy_core.refgraph.fields import ABSENT
from magpy_core.refgraph.snapshot import Change, Snapshot, slot_name
from magpy_core.refgraph.source import Source


@dataclass(slots=True, eq=False, repr=False)
class Node:
    """One external object. ``snapshot`` is its shallow state before its first write (or use by unknown native code)."""

    obj: Any
    source: Source
    kind: int
    type_name: str
    snapshot: Snapshot | None = None
    is_watched: bool = False  # the snapshot was shown to who may refuse it
    written_at: dict[Any, None] = field(default_factory=dict)  # the sites, in order
    slots_written_at: dict[Any, dict[Any, None]] = field(default_factory=dict)  # those of each slot that events show
    contents_read: bool = False
    must_be_distinct: bool = False  # compared, hashed or a memo key: no other node may have the same object
    summary: str = ""
    was_written: bool = False
    # slots written by name: part of the effect even if the write changed nothing, because a later call may start from
    # another value that nothing guards
    forced: list[tuple[str, Any]] = field(default_factory=list)
    # writes shown by events: appended values, and the last value of each slot (ABSENT: deleted)
    appended: list[Any] = field(default_factory=list)
    noted: dict[Any, Any] = field(default_factory=dict)

    def note_write(self, key: Any, value: Any) -> None:
        """Note that an event shows a write of ``value`` to slot ``key``."""
        self.noted[slot_name(key)] = value
        if type(key) in (str, bytes):
            secrets.note(key, value)  # generated code shows what it writes

    def note_site(self, key: Any, site: Any) -> None:
        """Note where slot ``key`` is written."""
        self.slots_written_at.setdefault(slot_name(key), {})[site] = None

    def sites_of(self, change: Change) -> list[Any]:
        """Where the region made this change, as far as events have shown it."""
        if known := self.slots_written_at.get(slot_name(change.key)):
            return list(known)
        others = {site for sites in self.slots_written_at.values() for site in sites}
        return [site for site in self.written_at if site not in others] or list(self.written_at)

    def explains(self, change: Change) -> bool:
        """Whether events have shown that the region made this change last."""
        if change.op == "extend":
            return len(change.value) == len(self.appended) and all(map(operator.is_, change.value, self.appended))
        if change.op in ("add", "discard"):
            return self.noted.get(id(change.value)) is (change.value if change.op == "add" else ABSENT)
        if change.op == "replace":
            return False
        value = ABSENT if change.op.startswith("del_") else change.value
        return self.noted.get(slot_name(change.key), self) is value

    def release(self) -> None:
        """Drop the object, its snapshot, and the values and keys written to it; keep names of slots for the printer."""
        self.summary = self.summary or repr(self)
        if self.kind != kinds.IDENTITY:
            self.obj = None
        self.snapshot = None
        self.appended, self.noted, self.slots_written_at = [], {}, {}
        self.forced = [(op, k) for op, k in self.forced if op.startswith(("set_", "maybe_")) and type(k) is str]

    def __repr__(self) -> str:
        if self.summary:
            return self.summary
        return f"Node({self.source.describe()}: {kinds.NAMES[self.kind]} {self.type_name})"
