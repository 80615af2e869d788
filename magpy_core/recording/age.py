"""Age: whether an object was created inside the region or existed before it. Key types: Age, Existing."""

from __future__ import annotations

import gc
from dataclasses import field
from typing import Any

from magpy_core.findings import Unsupported, Value
from magpy_core.recording.tracker import Tracker
from magpy_core.refgraph import kinds
from magpy_core.refgraph.kinds import is_a
from magpy_core.replay.ir import MadeInside


class Existing:
    """The objects of the region that exist now. An object that is created later may get the id of one that has died; the
    collector, which is off while recording, keeps new objects in the order of their creation."""

    def __init__(self) -> None:
        self._ids = {id(o) for o in gc.get_objects(0)}
        self._last: list[Any] = []

    def __contains__(self, obj: Any) -> bool:
        if id(obj) not in self._ids:
            return False
        for other in reversed(gc.get_objects(0)):
            if other is obj:
                return False
            if other is self._last:
                return True
        return True  # the program has run the collector


class Age(Tracker):
    """Objects without a source are assumed internal; the garbage collector's newest generation decides at exit."""

    _new_objects: set[int] | None = field(default=None, init=False)
    only_inside: dict[int, tuple[Any, Unsupported, Any]] = field(default_factory=dict, init=False)

    def assume_internal(self, obj: Any) -> None:
        """``obj`` has no source: the region must have created it, which is checked at exit."""
        if id(obj) not in self.refgraph.assumed_internal:
            self.refgraph.assumed_internal[id(obj)] = (obj, self.journal.site)

    def is_made_inside(self, obj: Any) -> bool | None:
        """Whether the region created ``obj``. The collector is off while recording and its newest generation was empty at
        entry, so the objects in it were created since. None for objects that the collector does not track."""
        if self._new_objects is None:
            self._new_objects = {id(o) for o in gc.get_objects(0)}
        if id(obj) in self._new_objects:
            return True
        return False if gc.is_tracked(obj) else None

    @staticmethod
    def is_constant(obj: Any, site: Any) -> bool:
        """Whether it is a constant of the code (`x in {"a", "b"}`), which its function determines."""
        return type(obj) is frozenset and any(obj is constant for constant in site.code.co_consts)

    def check_assumptions(self) -> None:
        """Check that every object that was assumed internal was created inside."""
        self._new_objects = None
        for obj, refusal, site in self.only_inside.values():
            if not self.is_made_inside(obj) and not self.journal.is_explained(site):
                if is_a(refusal, MadeInside):
                    self.journal.refuse_if_repeated(refusal, site)
                else:
                    self.journal.refuse(refusal.code, refusal.message, hint=refusal.hint, site=site)
        for obj, site in self.refgraph.assumed_internal.values():
            if id(obj) in self.refgraph.nodes:
                continue
            if self.is_made_inside(obj) is False and not self.journal.is_explained(site):
                self.journal.refuse(
                    "MP111",
                    f"State outside the region ({kinds.bounded_repr(obj)}) was reached in a way the monitor can't follow.",
                    hint="Pass it to the region, or keep it in an attribute or a global variable.",
                    values=(Value("object", kinds.bounded_repr(obj)),),
                    site=site,
                )
