"""Clocks: numbers that are read from a clock. What is read before the first operation of the graph is known when it begins;
what is read after the last one is known at the end. Key type: Clocks.
"""

from __future__ import annotations

from typing import Any

from magpy_core.knowledge.modules import Verdict
from magpy_core.monitor.events import MaybeSite
from magpy_core.opgraph.functions import reads_value
from magpy_core.opgraph.scalars import Sym
from magpy_core.recording.tracker import Tracker
from magpy_core.refgraph.clocks import ClockRead, is_clock

_CALLS = ("call_function", "call_method")
_FREE = ("detach", "item", "tolist")  # what may follow a read: it computes nothing


class Clocks(Tracker):
    """Their numbers are symbolic. The path may depend on one, but not the graph, nor code that needs its exact value."""

    def reads(self, site: MaybeSite, fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        """Whether the number of a clock that is about to be read will be symbolic."""
        if not is_clock(fn) or args or kwargs or self.ledger.ops.op_depth:
            return False
        self.context.stack.expect(
            lambda result: self._read(site, fn, result), lambda: self.context.outside.host_call(site, fn, Verdict.HOST)
        )
        return True

    def _read(self, site: MaybeSite, fn: Any, result: Any) -> Any:
        last = next((node for node in reversed(self.ledger.ops.graph.nodes) if node.op in _CALLS), None)
        scalars, fresh = self.ledger.scalars, self.ledger.fresh
        if last is None:
            base = self.sources.const(fn, f"time.{fn.__name__}")
            source = self.sources.make("clock", base, len(fresh.clocks))
            fresh.clocks.append(source)
            return scalars.bind(result, scalars.source(source, result))
        read = ClockRead(fn, last, site)
        self.journal.places.remember(read, site)
        fresh.late_clocks.append(read)
        return scalars.bind(result, Sym("clock", read, (), result))

    def fixed(self, sym: Sym) -> bool:
        """Whether a number whose exact value is needed comes from a clock: refuses it."""
        for leaf in sym.leaves():
            if leaf.kind == "clock" or (leaf.kind == "source" and leaf.payload.kind == "clock"):
                read = leaf.payload
                fn = read.clock if leaf.kind == "clock" else read.parent.key
                site = read.site if leaf.kind == "clock" else self.journal.site
                self.context.outside.host_call(site, fn, Verdict.HOST)
                return True
        return False

    def left(self) -> None:
        """At exit: refuse a clock that is read between operations."""
        nodes = [node for node in self.ledger.ops.graph.nodes if node.op in _CALLS]
        index = {node: i for i, node in enumerate(nodes)}
        for read in self.ledger.fresh.late_clocks:
            following = nodes[index[read.after] + 1 :] if read.after in index else nodes
            if not all(reads_value(node) or node.target in _FREE for node in following):
                place = self.journal.places.of(read, [read.site])
                self.context.outside.host_call(read.site, read.clock, Verdict.HOST, place)
                return
