"""Streams: text that the region writes to files and other text streams from outside: replay writes it again, like what is
printed. Key type: Streams.
"""

from __future__ import annotations

import json
from functools import partial
from typing import Any

from magpy_core.guards import kinds as guard
from magpy_core.monitor.events import MaybeSite
from magpy_core.opgraph.host_calls import HostCall
from magpy_core.recording.ledger import Output
from magpy_core.recording.tracker import Tracker
from magpy_core.refgraph import kinds
from magpy_core.refgraph.streams import CSV_WRITER, STREAMS, dialect_of, is_closed, row_length, stream_of

_LENGTH = HostCall(len, "length")


def _is_cell(value: Any) -> bool:
    """Whether writing it as a part of a row runs no code of the program."""
    return value is None or type(value) is str or type(value) is bool or type(value) in kinds.PYTHON_NUMBERS


def writes_text(fn: Any) -> bool:
    """Whether a native method writes text to a stream, and does nothing else with it."""
    return (type(fn.__self__) in STREAMS and fn.__name__ == "write") or (
        type(fn.__self__) is CSV_WRITER and fn.__name__ == "writerow"
    )


class Streams(Tracker):
    """Handles methods of streams. Output comes last, so a stream that is also read is refused elsewhere."""

    def method(self, site: MaybeSite, obj: Any, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        """Whether a method that is about to be called only writes text."""
        if kwargs or not self.can_write(obj):
            return False
        if type(obj) is CSV_WRITER:
            return name == "writerow" and len(args) == 1 and self._row(site, obj, args[0])
        if name == "write" and len(args) == 1 and type(args[0]) is str:
            self.guard_open(obj, site)
            self._repeat(site, obj, name, args)
            if (sym := self.ledger.scalars.get(args[0])) is not None:
                self._expect(self.ledger.scalars.call(_LENGTH, (sym,), len(args[0])), site)
            return True
        if name == "flush" and not args:
            self.guard_open(obj, site)
            self._repeat(site, obj, name, ())
            return True
        return False

    def can_write(self, obj: Any) -> bool:
        """Whether replay can write to a stream: it is open, existed before, and runs no code of the program."""
        return self.refgraph.node(obj) is not None and not is_closed(obj)

    def guard_open(self, obj: Any, site: MaybeSite) -> None:
        """Guard that it is not closed: then writing does not raise."""
        node = self.refgraph.nodes[id(obj)]
        self.refgraph.read(self.sources.make("closed", node.source, None), guard.EQUAL, False, site)

    def dumps(self, site: MaybeSite, fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        """``json.dump(tree, stream)``: whether the text can be written at once."""
        if fn is not json.dump or len(args) != 2 or stream_of(args[1]) is not args[1] or not self.can_write(args[1]):
            return False
        text = self.context.varying_texts.json_text(args[0], kwargs)
        if text is None:
            return False
        self.context.arguments.read(site, args[:1], kwargs)
        self.guard_open(args[1], site)
        self._repeat(site, args[1], "write", (text,))
        return True

    def _row(self, site: MaybeSite, writer: Any, row: Any) -> bool:
        options = dialect_of(writer)
        if type(row) not in (list, tuple) or options is None or not all(_is_cell(cell) for cell in row):
            return False
        self.context.arguments.read(site, (row,), {})
        self.guard_open(writer, site)
        self._repeat(site, writer, "writerow", (list(row),))
        scalars = self.ledger.scalars
        cells = tuple(scalars.get(cell) or cell for cell in row)
        if any(cell is not given for cell, given in zip(cells, row, strict=True)):
            self._expect(scalars.call(HostCall(partial(row_length, options), "row_length"), cells, 0), site)
        return True

    def _expect(self, sym: Any, site: MaybeSite) -> None:
        """The number of characters depends on the text."""

        def receive(result: Any) -> Any:
            sym.hint = result
            return self.ledger.scalars.bind(result, sym) if type(result) is int else result

        self.context.stack.expect(receive, lambda: self.context.numbers.escape(sym, site))

    def _repeat(self, site: MaybeSite, stream: Any, name: str, args: tuple[Any, ...]) -> None:
        self.ledger.outputs.append(Output("write", (stream, name, *args), site))
        self.journal.places.remember(None, site)
