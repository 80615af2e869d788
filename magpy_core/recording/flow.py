"""FlowEvents: how values go from one piece of code to another: iteration, yields, returns, unpacking, text, with blocks.

Key type: FlowEvents.
"""

from __future__ import annotations

import dis
import types
from typing import Any

import torch

from magpy_core.monitor.positions import user_frame
from magpy_core.recording.values import ValueEvents
from magpy_core.refgraph import kinds
from magpy_core.refgraph.kinds import is_a

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


class FlowEvents(ValueEvents):
    """Observer methods for what moves values about."""

    # -- iteration ---------------------------------------------------------------------------------------------

    def iterate(self, site: Any, obj: Any) -> None:
        self.site = site
        self.iterate_value(obj, site)

    def iterate_value(self, obj: Any, site: Any, *, carry: bool = True) -> None:
        if is_a(obj, torch.Tensor):
            return
        kind = kinds.kind_of(obj)
        if kind in (kinds.SCALAR, kinds.IDENTITY):
            return
        if kind == kinds.OBJECT or type(obj).__flags__ & (1 << 9):
            for name in _ITER_METHODS:
                self.class_fact(type(obj), name, site)
        node = self.node_for(obj)
        if kind in kinds.CONTAINERS:
            if node is not None:
                self.contents(node, site, values=node.kind != kinds.DICT, carry=carry)
        elif not self.memory_read(site, obj) and kind == kinds.OPAQUE and node is not None:
            self.read_iterator(obj, site)

    def yield_(self, site: Any, value: Any) -> None:
        """A number that varies goes from a generator to its consumer: native code gets the exact value."""
        held = kinds.kind_of(value) in kinds.CONTAINERS
        if held or (self.scalars and _may_hold_numbers(value)):
            frame = user_frame()
            consumer = frame.f_back if frame is not None else None
            if consumer is None or _opcode(consumer) not in _CARRYING_CONSUMERS or self.native_takes:
                self.site = site
                self.escape_all(site, value)
                if held and (self.native_takes or not self.calls or self.calls[-1][1] == "keeps"):
                    self.read_deep(site, (value,), {})
        if self.native_text:
            self.text_of(value, site)

    def return_(self, site: Any, value: Any) -> None:
        """A number that varies goes from a function to its caller: native code (``sorted`` with a key, ``len``) gets the
        exact value."""
        held = kinds.kind_of(value) in kinds.CONTAINERS
        if held or (self.scalars and _may_hold_numbers(value)):
            frame = user_frame()
            consumer = frame.f_back if frame is not None else None
            opcode = _opcode(consumer) if consumer is not None else ""
            taker = self.calls[-1][1] if self.calls else ""
            inspected = self.judging or self.native_takes
            if opcode.startswith(("CALL", "PRECALL")):
                passed = taker == "" or (taker == "passes" and not inspected)
            elif opcode in _CARRYING_CONSUMERS:
                passed = not inspected or site.code.co_name == "__next__"
            else:
                passed = opcode in _PASSING_OPCODES and site.code.co_name not in _CONVERSIONS
            if not passed:
                self.site = site
                self.escape_all(site, value)
                if held:  # native code looks into what it is given
                    self.read_deep(site, (value,), {})

    def unpack(self, site: Any, obj: Any) -> None:
        self.iterate(site, obj)

    def caught(self, site: Any, error: Any, classes: Any) -> None:
        """``except classes``: the classes of a tuple decide, which may be another one."""
        self.read_deep(site, (classes,), {}) if is_a(classes, tuple) else self.read_type(error, site)

    def extend(self, site: Any, target: Any, iterable: Any) -> None:
        self.site = site
        kind = kinds.kind_of(iterable)
        if kind == kinds.DICT:
            node = self.node_for(iterable)
            if node is not None:
                self.contents(node, site, carry=True)
        else:
            if site.opname == "SET_UPDATE":
                self.escape_all(site, iterable)
            self.iterate_value(iterable, site, carry=site.opname != "SET_UPDATE")

    def hashed(self, site: Any, key: Any) -> None:
        if self.scalars:
            self.site = site
            self.escape_all(site, key)
        self.identified(site, False, key)

    def match(self, site: Any, subject: Any) -> None:
        self.site = site
        self.read_type(subject, site)
        self.memory_read(site, subject)
        self.escape_all(site, subject)
        node = self.node_for(subject)
        if node is not None and node.kind in kinds.CONTAINERS:
            self.contents(node, site)
        if kinds.kind_of(subject) == kinds.OBJECT:
            self.operator_facts(subject, site)

    # -- the rest ----------------------------------------------------------------------------------------------

    def format(self, site: Any, value: Any, spec: Any) -> None:
        self.site = site
        if is_a(value, torch.Tensor):
            return
        self.escape_all(site, value)
        self.read_deep(site, (value,), {})
        self.text_of(value, site)
        if kinds.kind_of(value) == kinds.OBJECT:
            for name in ("__format__", "__str__", "__repr__"):
                self.class_fact(type(value), name, site)

    def with_enter(self, site: Any, manager: Any) -> None:
        self.site = site
        for name in ("__enter__", "__exit__"):
            self.class_fact(type(manager), name, site)
        self.node_for(manager)

    def import_from(self, site: Any, module: Any) -> None:
        self.site = site
        if is_a(module, types.ModuleType) and site.name is not None:
            self.read_module_global(module, site.name, site)
