"""Folds: ``sum``, ``max`` and ``min`` of numbers of which some vary, in a container or from a generator. Key type: Folds."""

from __future__ import annotations

import operator
from collections import deque
from collections.abc import Sequence
from types import GeneratorType
from typing import Any

from magpy_core.guards import kinds as guard
from magpy_core.monitor.events import MaybeSite
from magpy_core.recording.tracker import Tracker
from magpy_core.refgraph import folds, kinds, natives
from magpy_core.refgraph.node import Node

_HELD = (list, tuple, deque)


class Folds(Tracker):
    """Their result is symbolic. The numbers at entry in a list that the region extends are one number, which a guard
    computes."""

    def makes(self, site: MaybeSite, fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        """Whether the result of a call that is about to begin will be symbolic."""
        if kwargs or len(args) != 1 or not any(fn is one for one in folds.FOLDS.values()):
            return False
        values = args[0]
        if type(values) is GeneratorType and self.refgraph.node(values) is None:
            self.context.followed.follow(values, kinds.NUMBER_TYPES, lambda parts, result: self._of(site, fn, parts, result))
            return False
        if type(values) not in _HELD:
            return False
        node = self.refgraph.node(values)
        parts = list(natives.elements(values)) if node is None else self._parts_of_outside(node, fn, site)
        if parts is None or not self._can(fn, parts):
            return False
        self.context.stack.expect(
            lambda result: self._of(site, fn, parts, result), lambda: self.context.numbers.escape_all(site, list(parts))
        )
        return True

    def _can(self, fn: Any, parts: Sequence[Any]) -> bool:
        """Whether all are numbers of one type, and some vary: then the result is of that type for all others like them."""
        varies = any(self.context.varying_texts.varies(part) for part in parts)
        same = {type(part) for part in parts} in ({int}, {float})
        return varies and same and (fn is not sum or folds.SUM_IS_PLAIN or type(parts[0]) is int)

    def _of(self, site: MaybeSite, fn: Any, parts: Sequence[Any], result: Any) -> Any:
        if not self._can(fn, parts) or type(result) is not type(parts[0]):
            self.context.numbers.escape_all(site, list(parts))  # it is made of other values, too
            return result
        if fn is not sum:
            return result if len(parts) == 1 else self.context.numbers.computed(site, fn, tuple(parts), result)
        total: Any = 0
        for part in parts:
            total = self.context.numbers.computed(site, operator.add, (total, part), total + part)
        if total != result and total == total:  # it does not add one after the other
            self.context.numbers.escape_all(site, list(parts))
            return result
        return total

    def _parts_of_outside(self, node: Node, fn: Any, site: MaybeSite) -> Sequence[Any] | None:
        """The numbers that a list or deque from outside holds now: what it held at entry as one, and those that the region
        has appended. None where their number need not vary, or other things have happened to it."""
        added = node.appended
        if node.kind not in (kinds.LIST, kinds.DEQUE) or not added or node.snapshot is None or node.contents_read:
            return None
        entry, held = node.snapshot.content, list(natives.elements(node.obj))
        maxlen = node.obj.maxlen if node.kind == kinds.DEQUE else None
        before = folds.kept(entry, len(added), maxlen)
        now = [*before, *added][-len(held) :]
        if len(now) != len(held) or not all(map(operator.is_, now, held)) or not before:
            return None
        kind = type(before[0])
        key = (fn.__name__, len(added), kind)
        value = folds.fold(entry if maxlen is None else deque(entry, maxlen), key) if kind in kinds.NUMBER_TYPES else None
        if value is None or (fn is sum and kind is float and not folds.SUM_IS_PLAIN):
            return None
        source = self.sources.make("fold", node.source, key)
        self.refgraph.read(source, guard.TYPE, kind, site)
        return [self.ledger.scalars.bind(value, self.ledger.scalars.source(source, value)), *added]
