"""Flow: how values pass between pieces of code: iteration, yields, returns, unpacking, formatting, with blocks.

Key type: Flow.
"""

from __future__ import annotations

import dis
from typing import Any

import torch

from magpy_core.monitor.positions import user_frame
from magpy_core.recording.access.ports import AccessTracker
from magpy_core.recording.call_stack import Consumer
from magpy_core.refgraph import kinds
from magpy_core.refgraph.kinds import is_a

_ITER_METHODS = ("__iter__", "__next__")
# instructions that use the values of an iterator unchanged
_CARRYING_CONSUMERS = frozenset({"FOR_ITER", "SEND", "UNPACK_SEQUENCE", "UNPACK_EX", "LIST_EXTEND"})
# instructions that leave the result of a special method on the stack unchanged
_PASSING_OPCODES = {
    "LOAD_ATTR", "LOAD_METHOD", "LOAD_SUPER_ATTR", "BINARY_OP", "BINARY_SUBSCR", "BINARY_SLICE", "UNARY_NEGATIVE",
    "UNARY_POSITIVE", "UNARY_INVERT", "COMPARE_OP", "GET_ITER", "GET_AWAITABLE", "BEFORE_WITH", "LOAD_GLOBAL", "IMPORT_FROM",
}  # fmt: skip
_CONVERSIONS = {"__index__", "__len__", "__length_hint__", "__bool__", "__hash__", "__int__", "__float__", "__complex__"}


def _consumer() -> str:
    """Name of the caller's instruction that gets the value that the running frame yields or returns."""
    frame = user_frame()
    caller = frame.f_back if frame is not None else None
    return dis.opname[caller.f_code.co_code[caller.f_lasti]] if caller is not None and caller.f_lasti >= 0 else ""


class Flow(AccessTracker):
    """Handlers of events that pass values on."""

    def iterate(self, site: Any, obj: Any) -> None:
        self.journal.site = site
        if not self.basics.age.is_constant(obj, site):
            self.iterate_value(obj, site)

    def iterate_value(self, obj: Any, site: Any, *, carry: bool = True) -> None:
        kind = kinds.kind_of(obj)
        if kind in (kinds.SCALAR, kinds.IDENTITY, kinds.TENSOR):
            return
        if kind == kinds.OBJECT or kinds.is_heap_type(type(obj)):
            for name in _ITER_METHODS:
                self.facts.classes.member(type(obj), name, site)
        node = self.facts.roots.node_for(obj)
        if node is not None and kind in kinds.CONTAINERS:
            self.facts.contents.read_all(node, site, values=node.kind != kinds.DICT, carry=carry)
        elif not self.facts.arrays.memory_read(site, obj) and kind == kinds.OPAQUE and node is not None:
            self.calls.container_calls.read_iterator(obj, site)

    def yield_(self, site: Any, value: Any) -> None:
        """A dynamic number passes from a generator to its consumer: native code gets the exact value."""
        held = kinds.kind_of(value) in kinds.CONTAINERS
        if held or (self.ledger.scalars and type(value) in kinds.NUMBER_TYPES):
            if _consumer() not in _CARRYING_CONSUMERS or self.access.callbacks.consumes:
                self.journal.site = site
                self.basics.numbers.escape_all(site, value)
                if held and (self.access.callbacks.consumes or self.basics.stack.consumer in (None, Consumer.KEEPS)):
                    self.access.arguments.read(site, (value,), {})
        if self.access.callbacks.formats:
            self.access.texts.formatted(value, site)

    def return_(self, site: Any, value: Any) -> None:
        """A dynamic number passes from a function to its caller: native code (``sorted`` with a key, ``len``) gets the exact
        value."""
        held = kinds.kind_of(value) in kinds.CONTAINERS
        if held or (self.ledger.scalars and type(value) in kinds.NUMBER_TYPES):
            opcode = _consumer()
            consumer_kind = self.basics.stack.consumer or Consumer.PYTHON
            inspected = self.access.callbacks.selects or self.access.callbacks.consumes
            if opcode.startswith(("CALL", "PRECALL")):
                passed = consumer_kind is Consumer.PYTHON or (consumer_kind is Consumer.PASSES and not inspected)
            elif opcode in _CARRYING_CONSUMERS:
                passed = not inspected or site.code.co_name == "__next__"
            else:
                passed = opcode in _PASSING_OPCODES and site.code.co_name not in _CONVERSIONS
            if not passed:
                self.journal.site = site
                self.basics.numbers.escape_all(site, value)
                if held:  # native code may read inside the value
                    self.access.arguments.read(site, (value,), {})

    unpack = iterate

    def caught(self, site: Any, error: Any, classes: Any) -> None:
        """``except classes``: guard the classes in a tuple, or the exception's type."""
        if is_a(classes, tuple):
            self.access.arguments.read(site, (classes,), {})
        else:
            self.facts.contents.type_of(error, site)

    def extend(self, site: Any, target: Any, iterable: Any) -> None:
        self.journal.site = site
        if kinds.kind_of(iterable) != kinds.DICT:
            if site.opname == "SET_UPDATE":
                self.basics.numbers.escape_all(site, iterable)
            self.iterate_value(iterable, site, carry=site.opname != "SET_UPDATE")
        elif (node := self.facts.roots.node_for(iterable)) is not None:
            self.facts.contents.read_all(node, site, carry=True)

    def hashed(self, site: Any, key: Any) -> None:
        self.journal.site = site
        self.basics.numbers.escape_all(site, key)
        self.facts.contents.compared_or_hashed(site, False, key)

    def match(self, site: Any, subject: Any) -> None:
        self.journal.site = site
        self.facts.contents.type_of(subject, site)
        self.facts.arrays.memory_read(site, subject)
        self.basics.numbers.escape_all(site, subject)
        if (node := self.facts.roots.node_for(subject)) is not None:
            self.facts.contents.read_all(node, site)
        if kinds.kind_of(subject) == kinds.OBJECT:
            self.facts.classes.special_methods(subject, site)

    def format(self, site: Any, value: Any, spec: Any) -> None:
        self.journal.site = site
        if is_a(value, torch.Tensor):
            return
        self.basics.numbers.escape_all(site, value)
        self.access.arguments.read(site, (value,), {})
        self.access.texts.formatted(value, site)
        if kinds.kind_of(value) == kinds.OBJECT:
            for name in ("__format__", "__str__", "__repr__"):
                self.facts.classes.member(type(value), name, site)

    def with_enter(self, site: Any, manager: Any) -> None:
        self.journal.site = site
        for name in ("__enter__", "__exit__"):
            self.facts.classes.member(type(manager), name, site)
        self.facts.roots.node_for(manager)
