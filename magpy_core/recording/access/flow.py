"""Flow: how values pass between pieces of code: iteration, yields, returns, unpacking, formatting, with blocks.

Key type: Flow.
"""

from __future__ import annotations

import dis
import types
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

from magpy_core.monitor.positions import user_frame
from magpy_core.recording.arrays import Arrays
from magpy_core.recording.call_stack import CallStack, Consumer
from magpy_core.recording.numbers import Numbers
from magpy_core.recording.tracker import Tracker
from magpy_core.refgraph import kinds
from magpy_core.refgraph.kinds import is_a

if TYPE_CHECKING:
    from magpy_core.recording.groups import Access, Calls, Facts

_ITER_METHODS = ("__iter__", "__next__")
# instructions that take what an iterator yields as it is
_CARRYING_CONSUMERS = frozenset({"FOR_ITER", "SEND", "UNPACK_SEQUENCE", "UNPACK_EX", "LIST_EXTEND"})
# and those that leave what a special method returns on the stack as it is
_PASSING_OPCODES = {
    "LOAD_ATTR", "LOAD_METHOD", "LOAD_SUPER_ATTR", "BINARY_OP", "BINARY_SUBSCR", "BINARY_SLICE", "UNARY_NEGATIVE",
    "UNARY_POSITIVE", "UNARY_INVERT", "COMPARE_OP", "GET_ITER", "GET_AWAITABLE", "BEFORE_WITH", "LOAD_GLOBAL", "IMPORT_FROM",
}  # fmt: skip
_CONVERSIONS = frozenset(
    {"__index__", "__len__", "__length_hint__", "__bool__", "__hash__", "__int__", "__float__", "__complex__"}
)


def _may_hold_numbers(value: Any) -> bool:
    return type(value) in kinds.NUMBER_TYPES or is_a(value, (tuple, list, dict, set))


def _opcode(frame: types.FrameType) -> str:
    """Name of the instruction a frame is at."""
    return dis.opname[frame.f_code.co_code[frame.f_lasti]] if frame.f_lasti >= 0 else ""


@dataclass(eq=False)
class Flow(Tracker):
    """Handlers of what passes values on."""

    stack: CallStack
    numbers: Numbers
    arrays: Arrays
    facts: Facts
    access: Access
    calls: Calls

    def iterate(self, site: Any, obj: Any) -> None:
        self.journal.site = site
        self.iterate_value(obj, site)

    def iterate_value(self, obj: Any, site: Any, *, carry: bool = True) -> None:
        if is_a(obj, torch.Tensor):
            return
        kind = kinds.kind_of(obj)
        if kind in (kinds.SCALAR, kinds.IDENTITY):
            return
        if kind == kinds.OBJECT or kinds.is_heap_type(type(obj)):
            for name in _ITER_METHODS:
                self.facts.classes.member(type(obj), name, site)
        node = self.facts.roots.node_for(obj)
        if kind in kinds.CONTAINERS:
            if node is not None:
                self.facts.contents.whole(node, site, values=node.kind != kinds.DICT, carry=carry)
        elif not self.arrays.memory_read(site, obj) and kind == kinds.OPAQUE and node is not None:
            self.calls.container_calls.read_iterator(obj, site)

    def yield_(self, site: Any, value: Any) -> None:
        """A number that varies goes from a generator to its consumer: native code gets the exact value."""
        held = kinds.kind_of(value) in kinds.CONTAINERS
        if held or (self.ledger.scalars and _may_hold_numbers(value)):
            frame = user_frame()
            consumer = frame.f_back if frame is not None else None
            if consumer is None or _opcode(consumer) not in _CARRYING_CONSUMERS or self.access.callbacks.consumes:
                self.journal.site = site
                self.numbers.escape_all(site, value)
                if held and (self.access.callbacks.consumes or self.stack.consumer in (None, Consumer.KEEPS)):
                    self.access.arguments.read(site, (value,), {})
        if self.access.callbacks.formats:
            self.facts.texts.formatted(value, site)

    def return_(self, site: Any, value: Any) -> None:
        """A number that varies goes from a function to its caller: native code (``sorted`` with a key, ``len``) gets the
        exact value."""
        held = kinds.kind_of(value) in kinds.CONTAINERS
        if held or (self.ledger.scalars and _may_hold_numbers(value)):
            frame = user_frame()
            consumer = frame.f_back if frame is not None else None
            opcode = _opcode(consumer) if consumer is not None else ""
            consumer_kind = self.stack.consumer or Consumer.PYTHON
            inspected = self.access.callbacks.selects or self.access.callbacks.consumes
            if opcode.startswith(("CALL", "PRECALL")):
                passed = consumer_kind is Consumer.PYTHON or (consumer_kind is Consumer.PASSES and not inspected)
            elif opcode in _CARRYING_CONSUMERS:
                passed = not inspected or site.code.co_name == "__next__"
            else:
                passed = opcode in _PASSING_OPCODES and site.code.co_name not in _CONVERSIONS
            if not passed:
                self.journal.site = site
                self.numbers.escape_all(site, value)
                if held:  # native code looks into what it is given
                    self.access.arguments.read(site, (value,), {})

    def unpack(self, site: Any, obj: Any) -> None:
        self.iterate(site, obj)

    def caught(self, site: Any, error: Any, classes: Any) -> None:
        """``except classes``: the classes of a tuple decide, which may be another one."""
        self.access.arguments.read(site, (classes,), {}) if is_a(classes, tuple) else self.facts.contents.type_of(
            error, site
        )

    def extend(self, site: Any, target: Any, iterable: Any) -> None:
        self.journal.site = site
        kind = kinds.kind_of(iterable)
        if kind == kinds.DICT:
            node = self.facts.roots.node_for(iterable)
            if node is not None:
                self.facts.contents.whole(node, site, carry=True)
        else:
            if site.opname == "SET_UPDATE":
                self.numbers.escape_all(site, iterable)
            self.iterate_value(iterable, site, carry=site.opname != "SET_UPDATE")

    def hashed(self, site: Any, key: Any) -> None:
        if self.ledger.scalars:
            self.journal.site = site
            self.numbers.escape_all(site, key)
        self.facts.contents.identified(site, False, key)

    def match(self, site: Any, subject: Any) -> None:
        self.journal.site = site
        self.facts.contents.type_of(subject, site)
        self.arrays.memory_read(site, subject)
        self.numbers.escape_all(site, subject)
        node = self.facts.roots.node_for(subject)
        if node is not None and node.kind in kinds.CONTAINERS:
            self.facts.contents.whole(node, site)
        if kinds.kind_of(subject) == kinds.OBJECT:
            self.facts.classes.special_methods(subject, site)

    def format(self, site: Any, value: Any, spec: Any) -> None:
        self.journal.site = site
        if is_a(value, torch.Tensor):
            return
        self.numbers.escape_all(site, value)
        self.access.arguments.read(site, (value,), {})
        self.facts.texts.formatted(value, site)
        if kinds.kind_of(value) == kinds.OBJECT:
            for name in ("__format__", "__str__", "__repr__"):
                self.facts.classes.member(type(value), name, site)

    def with_enter(self, site: Any, manager: Any) -> None:
        self.journal.site = site
        for name in ("__enter__", "__exit__"):
            self.facts.classes.member(type(manager), name, site)
        self.facts.roots.node_for(manager)
