"""MethodCalls: methods of builtin objects, which run without events. Key type: MethodCalls."""

from __future__ import annotations

import contextvars
import re
import types
from typing import Any

from magpy_core.knowledge import policy
from magpy_core.knowledge.methods import ERROR_WRITES
from magpy_core.knowledge.modules import Verdict
from magpy_core.recording.callees import MEMBER
from magpy_core.recording.calls.containers import ContainerCalls
from magpy_core.recording.outside import Outside
from magpy_core.recording.tracker import Tracker
from magpy_core.refgraph import kinds, lookup
from magpy_core.refgraph.kinds import is_a


class MethodCalls(Tracker):
    """Calls of methods written in C."""

    container_calls: ContainerCalls
    outside: Outside

    def call(self, site: Any, obj: Any, name: str, args: tuple[Any, ...], kwargs: dict[str, Any], fn: Any) -> None:
        kind = kinds.kind_of(obj)
        if name in ("__setattr__", "__delattr__") and args and is_a(args[0], str):
            if is_a(obj, type):
                self.access.writes.attr(obj, args[0], site)
            else:
                self.access.writes.attr_past_setattr(obj, args[0], site, *args[1:2])
            return
        if name == "__getattribute__" and args and is_a(args[0], str):
            self.access.reads.raw_attr(obj, args[0], site)
            return
        if name == "__subclasses__":
            self.outside.host_call(site, fn, Verdict.UNKNOWN)
            return
        if name in ("__init__", "__init_subclass__", "__new__", "__class__") and kind == kinds.OBJECT:
            return
        if kind in (kinds.SCALAR, kinds.IDENTITY):
            if is_a(obj, types.FunctionType) and name == "__get__":
                return
            self.outside.lock_used(site, obj, name, fn)
            if is_a(obj, MEMBER) and args:
                self.access.natives.member_used(site, obj, name, args[0])
            self.basics.numbers.escape_all(site, obj, args, kwargs)
            self.access.arguments.read(site, args, kwargs)
            if is_a(obj, str) and name.startswith("format"):
                self.access.texts.formatted((*args, *kwargs.values()), site)
                self.access.natives.format_fields(site, obj)
            return
        if name in ("__reduce_ex__", "__reduce__", "__getstate__"):
            self.access.natives.state_read(obj, site)
        elif name == "sort" and kind == kinds.LIST and kwargs:
            self.access.callbacks.guard(site, sorted, (obj,), kwargs)
        if kind in kinds.CONTAINERS:
            self.container_calls.method(site, obj, name, args, kwargs)
        elif self.access.natives.pickles(type(obj), args) or (name in ERROR_WRITES and self.refgraph.node(obj) is not None):
            self.outside.host_call(site, fn, Verdict.UNKNOWN)
        elif is_a(obj, (types.GeneratorType, types.CoroutineType, types.AsyncGeneratorType)):
            self.container_calls.read_iterator(obj, site)
        elif kind == kinds.OPAQUE or type(obj).__module__ in ("_io", "io", "_thread", "re", "numpy"):
            self._opaque(site, obj, name, args, kwargs, fn)
        elif not self.facts.arrays.memory_read(site, obj):
            owner = lookup.class_lookup(type(obj), name)[1]
            if self.outside.seeded_inside(obj, name, args):
                self.basics.numbers.escape_all(site, args, kwargs)
                self.access.arguments.read(site, args, kwargs)
                return
            if owner is not None and policy.is_host_module(owner.__module__):  # random.random, a method of a hidden object
                self.outside.host_call(site, fn, Verdict.HOST)
                return
            if owner is not None and policy.native_base(owner) is owner:
                what = policy.verdict(owner)
                if what != Verdict.PURE or self.refgraph.node(obj) is not None:  # an object created inside has a known state
                    self.outside.host_call(site, fn, what)
                    return
            self.facts.roots.node_for(obj)
            self.access.arguments.read(site, args, kwargs)

    def _opaque(self, site: Any, obj: Any, name: str, args: tuple[Any, ...], kwargs: dict[str, Any], fn: Any) -> None:
        module = type(obj).__module__
        if module == "_thread" or type(obj).__name__ in ("RLock", "lock"):
            return  # locks affect no result
        if is_a(obj, contextvars.ContextVar):
            self.outside.context_variable(obj, name, args, site)
            return
        if type(obj) in (*kinds.DICT_VIEWS, memoryview, re.Match, re.Pattern) or (
            is_a(obj, contextvars.Context) and name != "run"
        ):
            self.facts.arrays.memory_read(site, obj)
            self.access.arguments.read(site, args, kwargs)
            return
        if module in ("_io", "io"):
            self.outside.host_call(site, fn, Verdict.IO)
        elif hasattr(type(obj), "__next__"):
            self.container_calls.read_iterator(obj, site)
        elif module.startswith("torch"):
            self.basics.stack.torch = (site, fn)
        elif policy.verdict(fn) in (Verdict.HOST, Verdict.IO):
            self.outside.host_call(site, fn, policy.verdict(fn))
        elif module == "numpy" and (kinds.is_numpy_value(type(obj)) or self.facts.arrays.is_plain_array(obj)):
            self.outside.call_numpy(site, fn, args, kwargs)
        elif (self.refgraph.node(obj) is not None or module == "numpy") and not (
            module == "numpy" and self.journal.graph_incomplete
        ):
            self.outside.host_call(site, fn, Verdict.UNKNOWN)
