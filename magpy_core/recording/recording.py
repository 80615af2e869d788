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
        self.context = context = build(ledger, journal)
        ledger.ops = OperatorGraph(scalars, context.host, learned.dims, may_be_dynamic(learned))
        ledger.refgraph.watch = context.lifetimes.on_snapshot
        context.frames.handled_by(vars(context).values())
        self._parts = [ledger.ops, *(part for part in vars(context).values() if part is not journal), context]
        journal.on_abort(self._forget)
        for event, handler in self._handlers().items():
            setattr(self, event, handler)

    def _handlers(self) -> dict[str, Callable[..., Any]]:
        """The handler of each event."""
        context = self.context
        owners: dict[Any, str] = {
            context.frames: "enter_frame",
            context.globals: "global_read global_write global_delete import_from",
            context.reads: "cell_read attr_read",
            context.items: "item_read item_read_result",
            context.writes: "cell_write cell_delete attr_write attr_delete item_write item_delete",
            context.dispatch: "call call_result",
            context.operators: "binary binary_result unary unary_result compare compare_result is_ is_result contains truth",
            context.flow: "iterate unpack extend hashed match with_enter caught yield_ return_ "
            "format format_result joined_result",
            context.natives: "match_class",
            context.host_calls: "attr_result",
            context.imports: "import_name",
        }
        return {event: getattr(owner, event) for owner, events in owners.items() for event in events.split()}

    def _forget(self) -> None:
        """The recording was aborted: it must keep no object of the program alive."""
        self.ledger.refgraph.forget()
        self.ledger.ops.values.clear()
        self.context.age.only_inside.clear()

    def close(self) -> None:
        """Drop all references now: trackers refer to each other, so objects would stay alive until a garbage collection."""
        for part in self._parts:
            vars(part).clear()
