"""GuardKind: what there is to know of one kind of guard. The kinds themselves are in ``magpy_core.guards.kinds``.

A reference graph only stores, prints and verifies reads; that guards are generated, explained and cut short is for the
stages above.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar

from magpy_core.refgraph.kinds import bounded_repr

if TYPE_CHECKING:
    from magpy_core.guards.codegen import GuardWriter
    from magpy_core.guards.explain import Failure
    from magpy_core.guards.first_level import FirstLevel
    from magpy_core.refgraph.graph import Read
    from magpy_core.refgraph.source import Source


class GuardKind(ABC):
    """What a read says of the value at its source. There is one object per kind: kinds are compared by identity."""

    name: ClassVar[str]
    of_object: ClassVar[bool] = False  # it is about the object at the source, not about the place that object is in
    reported: ClassVar[bool] = False  # a finding names it (MP204)
    says: ClassVar[str] = "{source} is {expected}"

    def check(self, expected: Any) -> str:
        """Its name in reports. Of one source there are several reads of a kind only where this differs."""
        return self.name

    def subject(self, read: Read) -> tuple[str, str]:
        """What was read, and its value, for messages."""
        return read.source.describe(), bounded_repr(read.expected)

    def released(self, expected: Any) -> Any:
        """``expected`` once the recording has ended: without references to the program's objects."""
        return expected

    def text(self, read: Read) -> str:
        """The read as a sentence fragment: ``self.calls == 3``."""
        return self.says.format(source=read.source.describe(), expected=bounded_repr(read.expected))

    @abstractmethod
    def code(self, writer: GuardWriter, read: Read) -> None:
        """Write the statements that check it."""

    def entry_test(self, writer: GuardWriter, read: Read, own: bool) -> str | None:
        """When it fails, as a test of ``d``, the dict with the entry at the source; None: it is checked by itself. ``own``:
        the dict is an object's own namespace."""
        return None

    @abstractmethod
    def failure(self, read: Read, now: Callable[[Source], Any]) -> Failure | None:
        """Why it does not hold, or None; ``now`` is what there is at a source now."""

    def covered_by_tag(self, level: FirstLevel, read: Read) -> bool:
        """Whether it holds as long as the watched dicts and words do not change."""
        return False
