"""Read: one guarded edge, and GuardKind: the interface of its kind of guard. The kinds themselves are in
``magpy_core.guards.kinds``.

A reference graph only stores, prints and verifies reads; later stages generate and explain guards. Key types: Read,
GuardKind.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

from magpy_core.refgraph.failure import Failure
from magpy_core.refgraph.shown import shown
from magpy_core.refgraph.source import Level, Source, Writer


@dataclass(slots=True)
class Read:
    """One guarded edge: ``kind`` of ``source`` was ``expected`` at the site (None: read at entry to the region)."""

    source: Source
    kind: GuardKind
    expected: Any
    site: Any = None

    @property
    def counted(self) -> bool:
        """Whether checking it is an access that a cache counts."""
        return self.source.counted or (type(self.expected) is Source and self.expected.counted)


class CheckWriter(Writer, Protocol):
    """The guard generator, as a kind of guard sees it: it writes checks too."""

    checks: int
    deferred: list[Callable[[], None]]

    def fail_if(self, condition: str, site: Any) -> None: ...
    def entry(self, name: str, test: str) -> None: ...
    def has(self, source: Source) -> bool: ...
    def object_const(self, value: Any) -> str: ...
    def types_of_values(self, source: Source) -> None: ...
    def scalar(self, sym: Any) -> str: ...


class FirstLevel(Level, Protocol):
    """The first level of a guard, as a kind of guard sees it."""

    def watched(self, source: Source) -> bool: ...
    def is_stable(self, source: Source) -> bool: ...
    def table(self, source: Source, *, keys: bool = True) -> bool: ...
    def hooks(self, source: Source) -> bool: ...


class GuardKind(ABC):
    """What a read states about the value at its source. There is one object per kind: kinds are compared by identity."""

    name: ClassVar[str]
    of_object: ClassVar[bool] = False  # it describes the object at the source, not the slot that holds the object
    reported: ClassVar[bool] = False  # a finding names it (MP204)
    template: ClassVar[str] = "{source} is {expected}"

    def check(self, expected: Any) -> str:
        """The name in reports. Reads of one source and kind are duplicates if this is equal."""
        return self.name

    def subject(self, read: Read) -> tuple[str, str]:
        """The value's source and the expected value, for messages."""
        return read.source.describe(), shown(read.source, read.expected)

    def released(self, expected: Any) -> Any:
        """``expected`` once the recording has ended: without references to the program's objects."""
        return expected

    def text(self, read: Read) -> str:
        """The read as a sentence fragment: ``self.calls == 3``."""
        return self.template.format(source=read.source.describe(), expected=shown(read.source, read.expected))

    @abstractmethod
    def code(self, writer: CheckWriter, read: Read) -> None:
        """Write the statements that check ``read``."""

    def entry_test(self, writer: CheckWriter, read: Read, own: bool) -> str | None:
        """The condition under which ``read`` fails, as a test of ``d``, the dict with the entry at the source; None: it is
        checked separately. ``own``: the dict is an object's namespace."""
        return None

    @abstractmethod
    def failure(self, read: Read, now: Callable[[Source], Any]) -> Failure | None:
        """Why ``read`` does not hold, or None; ``now`` returns the current value at a source."""

    def covered_by_tag(self, level: FirstLevel, read: Read) -> bool:
        """Whether ``read`` holds as long as the watched dicts and pointers do not change."""
        return False
