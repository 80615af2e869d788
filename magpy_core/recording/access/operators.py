"""Operators: arithmetic, comparisons, truth and identity, on symbols and on objects from outside. Key type: Operators."""

from __future__ import annotations

import types
import weakref
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

from magpy_core.findings import HERE
from magpy_core.guards import kinds as guard
from magpy_core.opgraph.scalars import BINARY, COMPARE, UNARY
from magpy_core.recording.arrays import Arrays
from magpy_core.recording.callees import is_copying
from magpy_core.recording.decisions import Decisions
from magpy_core.recording.numbers import Numbers
from magpy_core.recording.tracker import Tracker
from magpy_core.refgraph import kinds, lookup
from magpy_core.refgraph.kinds import is_a

if TYPE_CHECKING:
    from magpy_core.recording.groups import Access, Facts

_VALUES = frozenset({int, float, complex, str, bytes})
_FIXED_TRUTH = (types.FunctionType, types.ModuleType, type)


@dataclass(eq=False)
class Operators(Tracker):
    """Handlers of operators."""

    numbers: Numbers
    decisions: Decisions
    arrays: Arrays
    facts: Facts
    access: Access

    def binary(self, site: Any, lhs: Any, rhs: Any) -> None:
        tl, tr = type(lhs), type(rhs)
        if tl in kinds.NUMBER_TYPES and tr in kinds.NUMBER_TYPES:
            if self.ledger.scalars and (
                self.ledger.scalars.get(lhs) is not None or self.ledger.scalars.get(rhs) is not None
            ):
                self.journal.site = site
                self.numbers.escape_raising(BINARY.get((site.name or "").removesuffix("=")), (lhs, rhs), site)
            return
        self.journal.site = site
        if self.arrays.memory_read(site, lhs, rhs) or is_a(lhs, torch.Tensor) or is_a(rhs, torch.Tensor):
            self.facts.classes.operands(site, lhs, rhs)
            return
        if self.ledger.scalars:
            for v in (lhs, rhs):
                if type(v) in kinds.NUMBER_TYPES:
                    sym = self.ledger.scalars.get(v)
                    if sym is not None:
                        self.numbers.escape(sym, site)
            if site.name == "%" and is_a(lhs, str):
                self.numbers.escape_all(site, rhs)
        in_place = site.name is not None and site.name.endswith("=")
        if in_place and kinds.kind_of(lhs) in kinds.CONTAINERS:
            self.access.writes.counted(lhs)
        if is_a(lhs, kinds.HASHED) and is_a(rhs, kinds.HASHED):
            self.facts.contents.identified(site, True, lhs, rhs)
        for side, v in (("l", lhs), ("r", rhs)):
            kind = kinds.kind_of(v)
            if kind in (kinds.SCALAR, kinds.IDENTITY):
                continue
            if kinds.is_heap_type(type(v)):
                self.facts.classes.special_methods(v, site)
            node = self.facts.roots.node_for(v)
            if node is None:
                continue
            if in_place and side == "l" and node.kind in (kinds.LIST, kinds.SET, kinds.DEQUE, kinds.DICT):
                self.refgraph.snapshot(node)
                self.access.writes.mark_written(node, site)
                method = {"+=": "__iadd__", "|=": "update"}.get(site.name or "")
                if method is None or not self.access.writes.blind_write(node, method, (rhs,), {}):
                    node.forced.append((site.name or "", None))
                    self.facts.contents.whole(node, site)
            else:
                self.facts.contents.whole(node, site)
        if site.name == "%" and is_a(lhs, str):
            self.access.arguments.read(site, (rhs,), {})
            for v in rhs if is_a(rhs, tuple) else (rhs,):
                self.facts.texts.formatted(v, site)

    def binary_result(self, site: Any, lhs: Any, rhs: Any, result: Any) -> Any:
        if self.arrays._plain and (self.arrays.is_plain_array(lhs) or self.arrays.is_plain_array(rhs)):
            self.arrays.operator_result((lhs, rhs), result)
        if not self.ledger.scalars or type(lhs) not in kinds.NUMBER_TYPES or type(rhs) not in kinds.NUMBER_TYPES:
            return result
        a, b = self.ledger.scalars.get(lhs), self.ledger.scalars.get(rhs)
        if a is None and b is None:
            return result
        fn = BINARY.get((site.name or "").removesuffix("=") if site.name != "=" else "")
        if fn is None or type(result) not in kinds.NUMBER_TYPES:
            for sym in (a, b):
                if sym is not None:
                    self.numbers.escape(sym, site)
            return result
        return self.numbers.computed(site, fn, (a or lhs, b or rhs), result)

    def unary(self, site: Any, value: Any) -> None:
        self.arrays.memory_read(site, value)
        if kinds.kind_of(value) == kinds.OBJECT:
            self.facts.classes.special_methods(value, site)

    def unary_result(self, site: Any, value: Any, result: Any) -> Any:
        if not self.ledger.scalars or type(value) not in kinds.NUMBER_TYPES:
            return result
        sym = self.ledger.scalars.get(value)
        if sym is None:
            return result
        fn = UNARY.get(site.name or "")
        if fn is None or type(result) not in kinds.NUMBER_TYPES:
            self.numbers.escape(sym, site)
            return result
        return self.numbers.computed(site, fn, (sym,), result)

    def compare(self, site: Any, lhs: Any, rhs: Any) -> None:
        tl, tr = type(lhs), type(rhs)
        if tl in kinds.NUMBER_TYPES and tr in kinds.NUMBER_TYPES:
            if self.ledger.scalars:
                a, b = self.ledger.scalars.get(lhs), self.ledger.scalars.get(rhs)
                if a is not None or b is not None:
                    self.journal.site = site
                    fn = COMPARE[site.name or "=="]
                    outcome = fn(lhs, rhs)
                    self.decisions.decide(
                        self.ledger.scalars.call(fn, (a or lhs, b or rhs), outcome), outcome, "compare", site
                    )
            return
        self.journal.site = site
        if self.arrays.memory_read(site, lhs, rhs) or is_a(lhs, torch.Tensor) or is_a(rhs, torch.Tensor):
            self.facts.classes.operands(site, lhs, rhs)
            return
        self.numbers.escape_all(site, lhs, rhs)
        self.facts.contents.identified(site, is_a(lhs, kinds.HASHED) and is_a(rhs, kinds.HASHED), lhs, rhs)
        for v in (lhs, rhs):
            kind = kinds.kind_of(v)
            if type(v) is types.MethodType or (kind not in (kinds.SCALAR, kinds.IDENTITY) and kinds.is_heap_type(type(v))):
                self.facts.classes.special_methods(v, site)
            if kind == kinds.OBJECT:
                self.facts.classes.member(type(v), "__eq__", site)
                node = self.facts.roots.node_for(v)
                raw, _ = lookup.class_lookup(type(v), "__eq__")
                if node is not None and raw is object.__eq__:
                    other = rhs if v is lhs else lhs
                    self.is_(site, v, other)
        self.access.arguments.read(site, (lhs, rhs), {})

    def is_(self, site: Any, lhs: Any, rhs: Any) -> None:
        a, b = self.refgraph.node(lhs), self.refgraph.node(rhs)
        if type(lhs) in _VALUES and type(rhs) is type(lhs):
            self.journal.site = site
            self.numbers.escape_all(site, lhs, rhs)
            if not is_copying(site) and not all(self.known_identity(v, site) for v in (lhs, rhs)):
                # whether two equal values are one object is not a function of anything a guard watches
                self.journal.refuse("MP103", f"{HERE} compares two `{type(lhs).__name__}` values by identity.", site=site)
            return
        if a is None or b is None or a.kind == kinds.IDENTITY or b.kind == kinds.IDENTITY:
            return
        self.journal.site = site
        if a is not b:
            self.refgraph.read(a.source, guard.NOT_SAME_AS, b.source, site)

    def known_identity(self, value: Any, site: Any) -> bool:
        """Whether guards can fix which object a plain value is: a small int, a constant of the code, one read outside."""
        if type(value) is int and -5 <= value <= 256:
            return True
        if self.ledger.scalars and self.ledger.scalars.get(value) is not None:
            return False
        reads = [r for r in self.refgraph.reads if r.expected is value and r.kind is guard.EQUAL and r.source.kind != "len"]
        for read in reads:
            self.refgraph.read(read.source, guard.IS, value, site)
        return bool(reads) or any(value is constant for constant in site.code.co_consts)

    def is_result(self, site: Any, lhs: Any, rhs: Any, result: Any) -> Any:
        """A private copy of a number has an identity of its own; what counts is that of the number it stands for."""
        if not self.ledger.scalars or (self.ledger.scalars.get(lhs) is None and self.ledger.scalars.get(rhs) is None):
            return result
        return (self.ledger.scalars.original(lhs) is self.ledger.scalars.original(rhs)) is (site.name == "is")

    def contains(self, site: Any, item: Any, container: Any) -> None:
        if is_a(container, torch.Tensor):
            return
        self.journal.site = site
        self.arrays.memory_read(site, item, container)
        self.numbers.escape_all(site, item, () if type(container) is dict else container)
        kind = kinds.kind_of(container)
        if kind == kinds.OBJECT or (kind in kinds.CONTAINERS and kinds.is_heap_type(type(container))):
            self.facts.classes.member(type(container), "__contains__", site)
            self.facts.classes.special_methods(container, site)
        if type(item) is types.MethodType:
            self.facts.classes.special_methods(item, site)
        node = self.facts.roots.node_for(container)
        if is_a(container, kinds.HASHED):
            self.facts.contents.identified(site, node is not None or not is_a(container, (set, frozenset, dict)), item)
        if node is None:
            self.facts.contents.identified(site, False, item, container)
            return
        if is_a(item, weakref.ref) and node.kind == kinds.SET:  # a guard on its object would keep that alive
            self.journal.refuse(
                "MP111",
                "A weak reference is looked up in a set; it stands for another object, which no guard can watch.",
                site=site,
            )
            return
        if node.kind == kinds.DICT:
            self.access.items.dict_key(node, item, site)
        elif node.kind in kinds.CONTAINERS:
            self.facts.contents.whole(node, site)
            self.access.arguments.read(site, (container, item), {})  # it is compared with each element, whatever is in it

    def truth(self, site: Any, value: Any) -> None:
        tp = type(value)
        if tp is bool or value is None:
            return
        if is_a(value, torch.Tensor):
            self.journal.site = site
            return
        if tp in kinds.NUMBER_TYPES:
            sym = self.ledger.scalars.get(value) if self.ledger.scalars else None
            if sym is not None:
                self.journal.site = site
                self.decisions.decide(self.ledger.scalars.call(bool, (sym,), bool(value)), bool(value), "truth", site)
            return
        self.journal.site = site
        self.arrays.memory_read(site, value)
        kind = kinds.kind_of(value)
        if kind in kinds.CONTAINERS:
            node = self.facts.roots.node_for(value)
            if node is not None:
                if node.snapshot is not None:
                    self.facts.contents.length(node, site)
                else:
                    self.refgraph.read(node.source, guard.TRUTH, bool(len(value)), site)
        elif kind == kinds.OBJECT and not is_a(value, _FIXED_TRUTH):
            self.facts.classes.member(tp, "__bool__", site)
            if lookup.missing(lookup.class_lookup(tp, "__bool__")[0]):
                self.facts.classes.member(tp, "__len__", site)
