"""Recording: the observer of one monitored run. It builds the trackers and sends each event to its handler.

A tracker owns its fields; data shared by several trackers is in the `Ledger`. Key type: Recording.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from magpy_core.findings import Location
from magpy_core.monitor.events import Observer
from magpy_core.opgraph.operator_graph import OperatorGraph
from magpy_core.opgraph.scalars import ScalarTable
from magpy_core.recording.dynamic import may_be_dynamic
from magpy_core.recording.journal import Journal
from magpy_core.recording.ledger import Learned, Ledger
from magpy_core.recording.trackers import build


class Recording(Observer):
    """Events arrive in the order of the program; each has one handler (`_handlers`)."""

    def __init__(self, learned: Learned, region_id: str, location: Location, fullgraph: bool = False) -> None:
        scalars = ScalarTable()
        self.journal = journal = Journal(region_id, location, learned.set_up)
        self.ledger = ledger = Ledger(learned, scalars, fullgraph)
        self.trackers = trackers = build(ledger, journal)
        ledger.ops = OperatorGraph(scalars, trackers.host, learned.dims, may_be_dynamic(learned))
        ledger.refgraph.watch = trackers.lifetimes.on_snapshot
        with_frames = (trackers.modules, trackers.imports, trackers.output, *vars(trackers.nodes).values())
        trackers.frames.handled_by(with_frames)
        self._parts = [ledger.ops, ledger, *trackers.all()]
        journal.on_abort(self._forget)
        for event, handler in self._handlers().items():
            setattr(self, event, handler)

    def _handlers(self) -> dict[str, Callable[..., Any]]:
        """The handler of each event."""
        trackers = self.trackers
        access = trackers.access
        owners: dict[Any, str] = {
            trackers.frames: "enter_frame",
            access.globals: "global_read global_write global_delete import_from",
            access.reads: "cell_read attr_read",
            access.items: "item_read",
            access.writes: "cell_write cell_delete attr_write attr_delete item_write item_delete",
            trackers.dispatch: "call call_result",
            access.operators: "binary binary_result unary unary_result compare is_ is_result contains truth",
            access.flow: "iterate unpack extend hashed match format with_enter caught yield_ return_",
            access.natives: "match_class",
            trackers.imports: "import_name",
        }
        return {event: getattr(owner, event) for owner, events in owners.items() for event in events.split()}

    def _forget(self) -> None:
        """The recording was aborted: it must keep no object of the program alive."""
        self.ledger.refgraph.forget()
        self.ledger.ops.values.clear()
        self.trackers.basics.age.only_inside.clear()

    def close(self) -> None:
        """Drop all references now: trackers refer to each other, so objects would stay alive until a garbage collection."""
        for part in self._parts:
            vars(part).clear()
