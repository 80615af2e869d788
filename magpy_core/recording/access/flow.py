"""Flow: how values pass between pieces of code: iteration, yields, returns, unpacking, formatting, with blocks.

Key type: Flow.
"""

from __future__ import annotations

import dis
from typing import Any

import torch

from magpy_core.monitor.events import MaybeSite, Site
from magpy_core.monitor.positions import user_frame
from magpy_core.recording.call_stack import Consumer
from magpy_core.recording.tracker import Tracker
from magpy_core.refgraph import kinds
from magpy_core.refgraph.kinds import is_a

_ITER_METHODS = ("__iter__", "__next__")
# instructions that use the values of an iterator unchanged
_CARRYING_CONSUMERS = frozenset({"FOR_ITER", "SEND", "UNPACK_SEQUENCE", "UNPACK_EX", "LIST_EXTEND"})
# instructions that leave the result of a special method on the stack unchanged
_PASSING_OPCODES = {
    "LOAD_ATTR", "LOAD_METHOD", "LOAD_SUPER_ATTR", "BINARY_OP", "BINARY_SUBSCR", "BINARY_SLICE", "UNARY_NEGATIVE",
    "UNARY_POSITIVE", "UNARY_INVERT", "COMPARE_OP", "GET_ITER", "GET_AWAITABLE", "BEFORE_WITH", "LOAD_SPECIAL",
    "LOAD_GLOBAL", "IMPORT_FROM",
}  # fmt: skip
_CONVERSIONS = {
    "__str__", "__repr__", "__format__", "__fspath__", "__index__", "__len__", "__length_hint__", "__bool__", "__hash__",
    "__int__", "__float__", "__complex__",
}  # fmt: skip


_ARITHMETIC = {
    f"__{prefix}{name}__"
    for prefix in ("", "r", "i")
    for name in (
        "add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "and", "or", "xor", "lshift", "rshift", "divmod",
    )
}  # fmt: skip


def _consumer() -> str:
    """Name of the caller's instruction that gets the value that the running frame yields or returns."""
    frame = user_frame()
    caller = frame.f_back if frame is not None else None
    return dis.opname[caller.f_code.co_code[caller.f_lasti]] if caller is not None and caller.f_lasti >= 0 else ""


def _is_called_again() -> bool:
    """Whether a caller of the running frame runs the same code."""
    frame = user_frame()
    caller = frame.f_back if frame is not None else None
    while frame is not None and caller is not None and caller.f_code is not frame.f_code:
        caller = caller.f_back
    return caller is not None


class Flow(Tracker):
    """Handlers of events that pass values on."""

    def iterate(self, site: MaybeSite, obj: Any) -> None:
        self.journal.site = site
        if not self.context.age.is_constant(obj, site):
            self.iterate_value(obj, site)

    def iterate_value(self, obj: Any, site: MaybeSite, *, carry: bool = True) -> None:
        kind = kinds.kind_of(obj)
        if kind in (kinds.SCALAR, kinds.IDENTITY, kinds.TENSOR):
            self.context.numbers.escape_texts(site, obj)
            return
        if kind == kinds.OBJECT or kinds.is_heap_type(type(obj)):
            for name in _ITER_METHODS:
                self.context.classes.member(type(obj), name, site)
        node = self.context.roots.node_for(obj)
        if node is not None and kind in kinds.CONTAINERS:
            self.context.contents.read_all(node, site, values=node.kind != kinds.DICT, carry=carry)
        elif not self.context.arrays.memory_read(site, obj) and kind == kinds.OPAQUE and node is not None:
            self.context.container_calls.read_iterator(obj, site)

    def yield_(self, site: MaybeSite, value: Any) -> None:
        """A dynamic number passes from a generator to its consumer: native code gets the exact value."""
        held = kinds.kind_of(value) in kinds.CONTAINERS
        if self.context.followed and self.context.followed.takes(user_frame(), value):
            return
        if held or (self.ledger.scalars and type(value) in kinds.CARRYING):
            if _consumer() not in _CARRYING_CONSUMERS or self.context.callbacks.consumes:
                self.journal.site = site
                self.context.numbers.escape_all(site, value)
                if held and (self.context.callbacks.consumes or self.context.stack.consumer in (None, Consumer.KEEPS)):
                    self.context.arguments.read(site, (value,), {})
        if self.context.callbacks.formats:
            self.context.texts.formatted(value, site)

    def return_(self, site: Site, value: Any) -> None:
        """A dynamic number passes from a function to its caller: native code (``sorted`` with a key, ``len``) gets the exact
        value."""
        held = kinds.kind_of(value) in kinds.CONTAINERS
        if held or (self.ledger.scalars and type(value) in kinds.CARRYING):
            opcode = _consumer()
            consumer_kind = self.context.stack.consumer or Consumer.PYTHON
            inspected = self.context.callbacks.selects or self.context.callbacks.consumes
            if opcode.startswith(("CALL", "PRECALL")):
                passed = consumer_kind is Consumer.PYTHON or (consumer_kind is Consumer.PASSES and not inspected)
            elif opcode in _CARRYING_CONSUMERS:
                passed = not inspected or site.code.co_name == "__next__"
            elif opcode == "BINARY_OP":  # `"%(n)d" % obj` calls a method of another name
                passed = site.code.co_name in _ARITHMETIC
            else:
                passed = opcode in _PASSING_OPCODES and site.code.co_name not in _CONVERSIONS
            if not passed:
                self.journal.site = site
                self.context.numbers.escape_all(site, value)
                if held:  # native code may read inside the value
                    self.context.arguments.read(site, (value,), {})

    unpack = iterate

    def caught(self, site: MaybeSite, error: Any, classes: Any) -> None:
        """``except classes``: guard the classes in a tuple, or the exception's type."""
        if not _is_called_again():
            self.context.stack.raised(site)
        if is_a(classes, tuple):
            self.context.arguments.read(site, (classes,), {})
        else:
            self.context.contents.type_of(error, site)

    def extend(self, site: Site, target: Any, iterable: Any) -> None:
        self.journal.site = site
        if kinds.kind_of(iterable) != kinds.DICT:
            if site.opname == "SET_UPDATE":
                self.context.numbers.escape_all(site, iterable)
            self.iterate_value(iterable, site, carry=site.opname != "SET_UPDATE")
        elif (node := self.context.roots.node_for(iterable)) is not None:
            self.context.contents.read_all(node, site, carry=True)

    def hashed(self, site: MaybeSite, key: Any) -> None:
        self.journal.site = site
        self.context.numbers.escape_all(site, key)
        self.context.contents.compared_or_hashed(site, False, key)

    def match(self, site: MaybeSite, subject: Any) -> None:
        self.journal.site = site
        self.context.contents.type_of(subject, site)
        self.context.arrays.memory_read(site, subject)
        if (node := self.context.roots.node_for(subject)) is not None:
            self.context.contents.read_all(node, site)
        if kinds.kind_of(subject) == kinds.OBJECT:
            self.context.classes.special_methods(subject, site)

    def format(self, site: Site, value: Any, spec: Any) -> None:
        self.journal.site = site
        self.context.numbers.escape_texts(site, spec)
        is_kept = site.opname == "BUILD_INTERPOLATION"  # in a template string, which shows the number itself
        if is_a(value, torch.Tensor):
            if not is_kept:
                self.context.varying_texts.takes_tensor(value, site.name, spec)
            return
        if not is_kept and self.context.varying_texts.can_format(value, site.name, spec):
            return
        self.context.numbers.escape_all(site, value)
        self.context.arguments.read(site, (value,), {})
        self.context.texts.formatted(value, site)
        if kinds.kind_of(value) == kinds.OBJECT:
            for name in ("__format__", "__str__", "__repr__"):
                self.context.classes.member(type(value), name, site)

    def format_result(self, site: Site, value: Any, spec: Any, result: Any) -> Any:
        return self.context.varying_texts.formatted(site, value, site.name, spec, result)

    def joined_result(self, site: MaybeSite, parts: tuple[Any, ...], result: Any) -> Any:
        return self.context.varying_texts.joined(site, parts, result)

    def with_enter(self, site: MaybeSite, manager: Any) -> None:
        self.journal.site = site
        for name in ("__enter__", "__exit__"):
            self.context.classes.member(type(manager), name, site)
        self.context.roots.node_for(manager)
