"""Operators: arithmetic, comparisons, truth and identity, on symbols and on objects from outside. Key type: Operators."""

from __future__ import annotations

import operator
import types
import weakref
from typing import Any

import torch

from magpy_core.findings import HERE
from magpy_core.guards import kinds as guard
from magpy_core.monitor.events import MaybeSite, Site
from magpy_core.opgraph.scalars import BINARY, COMPARE, UNARY
from magpy_core.recording.callees import is_copying
from magpy_core.recording.tracker import Tracker
from magpy_core.refgraph import kinds, lookup, natives
from magpy_core.refgraph.arrays import is_array
from magpy_core.refgraph.kinds import is_a
from magpy_core.refgraph.node import Node

_TUPLES = (tuple, torch.Size)
_IN_PLACE_METHODS = {"+=": "__iadd__", "|=": "update"}  # whose effects may not depend on the old content
_FIXED_TRUTH = (types.FunctionType, types.ModuleType, type)


def _arithmetic(site: Any) -> Any:
    """The function of a (possibly in-place) operator on numbers."""
    return BINARY.get((site.name or "").removesuffix("="))


class Operators(Tracker):
    """Handlers of operators."""

    def binary(self, site: Site, lhs: Any, rhs: Any) -> None:
        if type(lhs) in kinds.NUMBER_TYPES and type(rhs) in kinds.NUMBER_TYPES:
            if self.context.numbers.carries((lhs, rhs), {}):
                self.journal.site = site
                self.context.numbers.escape_raising(_arithmetic(site), (lhs, rhs), site)
                return
            if type(lhs) in kinds.PYTHON_NUMBERS and type(rhs) in kinds.PYTHON_NUMBERS:
                return
        self.journal.site = site
        in_place = site.name is not None and site.name.endswith("=")
        if not in_place and self.context.host_calls.operates(site, _arithmetic(site), (lhs, rhs)):
            return
        if site.name == "%" and is_a(lhs, str) and self.context.varying_texts.takes_tensors(lhs, rhs):
            return
        if self.context.arrays.memory_read(site, lhs, rhs) or is_a(lhs, torch.Tensor) or is_a(rhs, torch.Tensor):
            self.context.classes.operands(site, lhs, rhs)
            return
        into_text = site.name == "%" and is_a(lhs, str)
        if into_text and self.context.varying_texts.can_percent(lhs, rhs):
            return
        if not (site.name in ("+", "+=") and type(lhs) is str and type(rhs) is str):
            self.context.numbers.escape_texts(site, lhs, rhs)
        self.context.numbers.escape_all(site, *(v for v in (lhs, rhs) if into_text or type(v) in kinds.NUMBER_TYPES))
        if in_place and kinds.kind_of(lhs) in kinds.CONTAINERS:
            self.context.writes.count_write(lhs)
        if is_a(lhs, kinds.HASHED) and is_a(rhs, kinds.HASHED):
            self.context.contents.compared_or_hashed(site, True, lhs, rhs)
        node = self._operand(site, lhs)
        if node is not None and not (in_place and self._written_in_place(site, node, rhs)):
            self.context.contents.read_all(node, site)
        node = self._operand(site, rhs)
        if node is not None:
            self.context.contents.read_all(node, site)
        if into_text:
            self.context.arguments.read(site, (rhs,), {})
            for v in rhs if is_a(rhs, tuple) else (rhs,):
                self.context.texts.formatted(v, site)

    def _operand(self, site: MaybeSite, value: Any) -> Node | None:
        """The node of an operand whose content the operator reads."""
        if kinds.kind_of(value) in (kinds.SCALAR, kinds.IDENTITY):
            return None
        if kinds.is_heap_type(type(value)):
            self.context.classes.special_methods(value, site)
        return self.context.roots.node_for(value)

    def _written_in_place(self, site: Site, node: Node, rhs: Any) -> bool:
        """Note ``lhs += rhs``, which changes a container. Whether its effect doesn't depend on the old content."""
        if node.kind not in (kinds.LIST, kinds.SET, kinds.DEQUE, kinds.DICT):
            return False
        self.refgraph.snapshot(node)
        self.context.writes.mark_written(node, site)
        method = _IN_PLACE_METHODS.get(site.name)
        if method is not None and self.context.writes.blind_write(node, method, (rhs,), {}):
            return True
        node.forced.append((site.name, None))
        return False

    def compare_result(self, site: Site, lhs: Any, rhs: Any, result: Any) -> Any:
        if is_array(lhs) or is_array(rhs):
            result = self.context.host_calls.operated(site, result)
            self.context.arrays.operator_result((lhs, rhs), result)
        return result

    def binary_result(self, site: Site, lhs: Any, rhs: Any, result: Any) -> Any:
        if is_array(lhs) or is_array(rhs):
            result = self.context.host_calls.operated(site, result)
            self.context.arrays.operator_result((lhs, rhs), result)
        if not self.context.numbers.carries((lhs, rhs), {}):
            return self._text_result(site, lhs, rhs, result) if type(lhs) is str else result
        return self.context.numbers.computed(site, _arithmetic(site), (lhs, rhs), result)

    def _text_result(self, site: Any, lhs: str, rhs: Any, result: Any) -> Any:
        if site.name in ("%", "%="):
            return self.context.varying_texts.percent(site, lhs, rhs, result)
        adds = site.name in ("+", "+=") and type(rhs) is str
        return self.context.varying_texts.joined(site, (lhs, rhs), result) if adds else result

    def unary(self, site: Site, value: Any) -> None:
        if self.context.host_calls.operates(site, UNARY.get(site.name or ""), (value,)):
            return
        self.context.arrays.memory_read(site, value)
        if kinds.kind_of(value) == kinds.OBJECT:
            self.context.classes.special_methods(value, site)

    def unary_result(self, site: Site, value: Any, result: Any) -> Any:
        if is_array(value):
            result = self.context.host_calls.operated(site, result)
            self.context.arrays.operator_result((value,), result)
            return result
        if not self.context.numbers.carries((value,), {}):
            return result
        return self.context.numbers.computed(site, UNARY.get(site.name or ""), (value,), result)

    def compare(self, site: Site, lhs: Any, rhs: Any) -> None:
        if type(lhs) in kinds.NUMBER_TYPES and type(rhs) in kinds.NUMBER_TYPES:
            if self.context.numbers.carries((lhs, rhs), {}):
                self.journal.site = site
                self.context.numbers.compare(COMPARE[site.name or "=="], lhs, rhs, site)
                return
            if type(lhs) in kinds.PYTHON_NUMBERS and type(rhs) in kinds.PYTHON_NUMBERS:
                return
        self.journal.site = site
        if self.context.host_calls.operates(site, COMPARE[site.name or "=="], (lhs, rhs)):
            return
        if site.name == "%" and is_a(lhs, str) and self.context.varying_texts.takes_tensors(lhs, rhs):
            return
        if self.context.arrays.memory_read(site, lhs, rhs) or is_a(lhs, torch.Tensor) or is_a(rhs, torch.Tensor):
            self.context.classes.operands(site, lhs, rhs)
            return
        if (site.name or "==") in ("==", "!=") and self._are_made_of_ints(lhs, rhs):
            self.context.numbers.compare_equal(lhs, rhs, site)
            return
        self.context.numbers.escape_all(site, lhs, rhs)
        self.context.contents.compared_or_hashed(site, is_a(lhs, kinds.HASHED) and is_a(rhs, kinds.HASHED), lhs, rhs)
        for v in (lhs, rhs):
            kind = kinds.kind_of(v)
            if type(v) is types.MethodType or (kind not in (kinds.SCALAR, kinds.IDENTITY) and kinds.is_heap_type(type(v))):
                self.context.classes.special_methods(v, site)
            if kind == kinds.OBJECT:
                self.context.classes.member(type(v), "__eq__", site)
                known = self.context.roots.node_for(v) is not None
                if known and lookup.class_lookup(type(v), "__eq__")[0] is object.__eq__:
                    self.is_(site, lhs, rhs)
        self.context.arguments.read(site, (lhs, rhs), {})

    def _are_made_of_ints(self, *values: Any) -> bool:
        """Whether they are sizes, or tuples like them, that the region has made (`x.size() != (layers, batch, width)`)."""
        return all(
            type(value) in _TUPLES and self.refgraph.node(value) is None and all(type(element) is int for element in value)
            for value in values
        )

    def is_(self, site: MaybeSite, lhs: Any, rhs: Any) -> None:
        if type(rhs) is type(lhs) and (type(lhs) in kinds.NUMBER_TYPES or type(lhs) in (complex, str, bytes)):
            self.journal.site = site
            self.context.numbers.escape_all(site, lhs, rhs)
            if not is_copying(site) and not all(self.known_identity(v, site) for v in (lhs, rhs)):
                # whether two equal values are the same object depends on nothing that a guard checks
                text = f"{HERE} compares two `{type(lhs).__name__}` values by identity."
                self.journal.refuse("MP103", text, hint="Compare values with `==` or `!=`, not with `is`.", site=site)
            return
        a, b = self.refgraph.node(lhs), self.refgraph.node(rhs)
        if a is not None and b is not None and a is not b and kinds.IDENTITY not in (a.kind, b.kind):
            self.journal.site = site
            self.refgraph.read(a.source, guard.NOT_SAME_AS, b.source, site)

    def known_identity(self, value: Any, site: Any) -> bool:
        """Whether guards can fix the identity of a plain value: a small int, a constant of the code, or one from outside."""
        if type(value) is int and -5 <= value <= 256:
            return True
        if self.ledger.scalars and self.ledger.scalars.get(value) is not None:
            return False
        reads = [r for r in self.refgraph.reads if r.expected is value and r.kind is guard.EQUAL and r.source.kind != "len"]
        for read in reads:
            self.refgraph.read(read.source, guard.IS, value, site)
        return bool(reads) or any(value is constant for constant in site.code.co_consts)

    def is_result(self, site: Site, lhs: Any, rhs: Any, result: Any) -> Any:
        """Compares the identities of the original numbers instead of their private copies."""
        if not self.ledger.scalars or (self.ledger.scalars.get(lhs) is None and self.ledger.scalars.get(rhs) is None):
            return result
        return (self.ledger.scalars.original(lhs) is self.ledger.scalars.original(rhs)) is (site.name == "is")

    def contains(self, site: MaybeSite, item: Any, container: Any) -> None:
        if is_a(container, torch.Tensor):
            return
        self.journal.site = site
        self.context.arrays.memory_read(site, item, container)
        looks_up = self.context.numbers.looks_up(item, container)
        if not looks_up:
            self.context.numbers.escape_all(site, item, () if type(container) is dict else container)
        kind = kinds.kind_of(container)
        if kind == kinds.OBJECT or (kind in kinds.CONTAINERS and kinds.is_heap_type(type(container))):
            self.context.classes.member(type(container), "__contains__", site)
            self.context.classes.special_methods(container, site)
        if type(item) is types.MethodType:
            self.context.classes.special_methods(item, site)
        node = None if self.context.age.is_constant(container, site) else self.context.roots.node_for(container)
        if looks_up:
            if node is not None:
                self.context.contents.read_all(node, site, values=node.kind != kinds.DICT)
            for element in natives.elements(container):
                self.context.numbers.compare(operator.eq, item, element, site)
            return
        if is_a(container, kinds.HASHED):
            self.context.contents.compared_or_hashed(
                site, node is not None or not is_a(container, (set, frozenset, dict)), item
            )
        if node is None:
            self.context.contents.compared_or_hashed(site, False, item, container)
            return
        if is_a(item, weakref.ref) and node.kind == kinds.SET:  # a guard on its object would keep the object alive
            text = f"{HERE} looks up a weak reference in a set: guards can't check the object that it refers to."
            self.journal.refuse("MP111", text, hint="Use a name or a number of the object instead.", site=site)
        elif node.kind == kinds.DICT:
            self.context.items.dict_key(node, item, site)
        elif node.kind in kinds.CONTAINERS:
            self.context.contents.read_all(node, site)
            self.context.arguments.read(site, (container, item), {})  # the comparison with each element may read anything

    def truth(self, site: MaybeSite, value: Any) -> None:
        tp = type(value)
        if tp is bool or value is None:
            return
        if tp in kinds.NUMBER_TYPES:
            sym = self.ledger.scalars.get(value) if self.ledger.scalars else None
            if sym is not None:
                self.journal.site = site
                self.context.decisions.decide(
                    self.ledger.scalars.call(bool, (sym,), bool(value)), bool(value), "truth", site
                )
            return
        self.journal.site = site
        self.context.arrays.memory_read(site, value)
        self.context.numbers.escape_texts(site, value)
        kind = kinds.kind_of(value)
        if kind in kinds.CONTAINERS:
            node = self.context.roots.node_for(value)
            if node is not None and node.snapshot is not None:
                varying = self.context.contents.length(node, site)
                if varying is not None and not varying.grown:
                    self.refgraph.read(node.source, guard.TRUTH, bool(varying.at_entry), site)
            elif node is not None:
                self.refgraph.read(node.source, guard.TRUTH, bool(len(value)), site)
        elif kind == kinds.OBJECT and not is_a(value, _FIXED_TRUTH):
            self.context.classes.member(tp, "__bool__", site)
            if lookup.missing(lookup.class_lookup(tp, "__bool__")[0]):
                self.context.classes.member(tp, "__len__", site)
