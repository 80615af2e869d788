"""MethodCalls: methods of builtin objects, which run without events. Key type: MethodCalls."""

from __future__ import annotations

import contextvars
import re
import types
from collections.abc import Callable
from typing import Any

from magpy_core.knowledge import policy
from magpy_core.knowledge.methods import ERROR_WRITES, STATE_READS, WITHOUT_EFFECT
from magpy_core.knowledge.modules import Verdict
from magpy_core.monitor.events import MaybeSite
from magpy_core.recording.callees import MEMBER
from magpy_core.recording.tracker import Tracker
from magpy_core.refgraph import kinds, lookup
from magpy_core.refgraph.kinds import is_a
from magpy_core.refgraph.streams import CSV_WRITER, STREAMS

_VALUES = frozenset({kinds.SCALAR, kinds.IDENTITY})
_GENERATORS = (types.GeneratorType, types.CoroutineType, types.AsyncGeneratorType)
_VIEWS = (*kinds.DICT_VIEWS, memoryview, re.Match, re.Pattern)  # they show what another object holds


class MethodCalls(Tracker):
    """Calls of methods written in C. The first row of ``_CASES`` that applies handles a call."""

    def call(self, site: MaybeSite, obj: Any, name: str, args: tuple[Any, ...], kwargs: dict[str, Any], fn: Any) -> None:
        kind = kinds.kind_of(obj)
        if name in STATE_READS and kind not in _VALUES:
            self.context.natives.state_read(obj, site)
        for applies, handle in _CASES:
            if applies(self, obj, kind, name, args, fn):
                handle(self, site, obj, name, args, kwargs, fn)
                return

    # -- which method it is --------------------------------------------------------------------------------------------

    def _writes_attribute(self, obj: Any, kind: int, name: str, args: tuple[Any, ...], fn: Any) -> bool:
        return name in ("__setattr__", "__delattr__") and bool(args) and is_a(args[0], str)

    def _attribute_write(
        self, site: MaybeSite, obj: Any, name: str, args: tuple[Any, ...], kwargs: dict[str, Any], fn: Any
    ) -> None:
        if is_a(obj, type):
            self.context.writes.attr(obj, args[0], site)
        else:
            self.context.writes.attr_past_setattr(obj, args[0], site, *args[1:2])

    def _reads_attribute(self, obj: Any, kind: int, name: str, args: tuple[Any, ...], fn: Any) -> bool:
        return name == "__getattribute__" and bool(args) and is_a(args[0], str)

    def _attribute_read(
        self, site: MaybeSite, obj: Any, name: str, args: tuple[Any, ...], kwargs: dict[str, Any], fn: Any
    ) -> None:
        self.context.reads.raw_attr(obj, args[0], site)

    def _lists_subclasses(self, obj: Any, kind: int, name: str, args: tuple[Any, ...], fn: Any) -> bool:
        return name == "__subclasses__"

    def _has_no_effect(self, obj: Any, kind: int, name: str, args: tuple[Any, ...], fn: Any) -> bool:
        return name in WITHOUT_EFFECT and kind == kinds.OBJECT

    def _binds_function(self, obj: Any, kind: int, name: str, args: tuple[Any, ...], fn: Any) -> bool:
        return name == "__get__" and is_a(obj, types.FunctionType)

    # -- which object it belongs to ------------------------------------------------------------------------------------

    def _is_value(self, obj: Any, kind: int, name: str, args: tuple[Any, ...], fn: Any) -> bool:
        return kind in _VALUES

    def _of_value(
        self, site: MaybeSite, obj: Any, name: str, args: tuple[Any, ...], kwargs: dict[str, Any], fn: Any
    ) -> None:
        self.context.outside.lock_used(site, obj, name, fn)
        if is_a(obj, MEMBER) and args:
            self.context.natives.member_used(site, obj, name, args[0])
        self.context.numbers.escape_all(site, obj, args, kwargs)
        self.context.arguments.read(site, args, kwargs)
        if is_a(obj, str) and name.startswith("format"):
            self.context.texts.formatted((*args, *kwargs.values()), site)
            self.context.natives.format_fields(site, obj)

    def _is_container(self, obj: Any, kind: int, name: str, args: tuple[Any, ...], fn: Any) -> bool:
        return kind in kinds.CONTAINERS

    def _of_container(
        self, site: MaybeSite, obj: Any, name: str, args: tuple[Any, ...], kwargs: dict[str, Any], fn: Any
    ) -> None:
        if name == "sort" and kinds.kind_of(obj) == kinds.LIST and kwargs:
            self.context.callbacks.guard(site, sorted, (obj,), kwargs)
        self.context.container_calls.method(site, obj, name, args, kwargs)

    def _pickles(self, obj: Any, kind: int, name: str, args: tuple[Any, ...], fn: Any) -> bool:
        return self.context.natives.pickles(type(obj), args)

    def _changes_error(self, obj: Any, kind: int, name: str, args: tuple[Any, ...], fn: Any) -> bool:
        return name in ERROR_WRITES and self.refgraph.node(obj) is not None

    def _is_generator(self, obj: Any, kind: int, name: str, args: tuple[Any, ...], fn: Any) -> bool:
        return is_a(obj, _GENERATORS)

    def _of_iterator(
        self, site: MaybeSite, obj: Any, name: str, args: tuple[Any, ...], kwargs: dict[str, Any], fn: Any
    ) -> None:
        self.context.container_calls.read_iterator(obj, site)

    def _is_opaque(self, obj: Any, kind: int, name: str, args: tuple[Any, ...], fn: Any) -> bool:
        return kind == kinds.OPAQUE or policy.module_facts(type(obj)).opaque

    def _of_opaque(
        self, site: MaybeSite, obj: Any, name: str, args: tuple[Any, ...], kwargs: dict[str, Any], fn: Any
    ) -> None:
        for applies, handle in _OPAQUE_CASES:
            if applies(self, obj, kinds.OPAQUE, name, args, fn):
                handle(self, site, obj, name, args, kwargs, fn)
                return

    def _is_any(self, obj: Any, kind: int, name: str, args: tuple[Any, ...], fn: Any) -> bool:
        return True

    def _of_object(
        self, site: MaybeSite, obj: Any, name: str, args: tuple[Any, ...], kwargs: dict[str, Any], fn: Any
    ) -> None:
        """A native method of an object of a Python class: one that it inherits from a native class, or ``object``'s."""
        if self.context.arrays.memory_read(site, obj):
            return
        if self.context.outside.seeded_inside(obj, name, args):
            self.context.numbers.escape_all(site, args, kwargs)
            self.context.arguments.read(site, args, kwargs)
            return
        verdict = self._verdict_on_owner(lookup.class_lookup(type(obj), name)[1], obj)
        if verdict is not None:
            self.context.outside.host_call(site, fn, verdict)
            return
        self.context.roots.node_for(obj)
        self.context.arguments.read(site, args, kwargs)

    def _verdict_on_owner(self, owner: type | None, obj: Any) -> Verdict | None:
        """The verdict on a method of the class ``owner``; None if it depends on its object and arguments alone."""
        if owner is None:
            return None
        if policy.is_host_module(owner.__module__):  # random.random, a method of a hidden object
            return Verdict.HOST
        if policy.native_base(owner) is owner:
            verdict = policy.verdict(owner)
            if verdict != Verdict.PURE or self.refgraph.node(obj) is not None:  # an object created inside has a known state
                return verdict
        return None

    # -- opaque objects ------------------------------------------------------------------------------------------------

    def _is_of_threads(self, obj: Any, kind: int, name: str, args: tuple[Any, ...], fn: Any) -> bool:
        return policy.module_facts(type(obj)).of_threads

    def _is_context_variable(self, obj: Any, kind: int, name: str, args: tuple[Any, ...], fn: Any) -> bool:
        return is_a(obj, contextvars.ContextVar)

    def _context_variable(
        self, site: MaybeSite, obj: Any, name: str, args: tuple[Any, ...], kwargs: dict[str, Any], fn: Any
    ) -> None:
        self.context.outside.context_variable(obj, name, args, site)

    def _is_view(self, obj: Any, kind: int, name: str, args: tuple[Any, ...], fn: Any) -> bool:
        return type(obj) in _VIEWS or (is_a(obj, contextvars.Context) and name != "run")

    def _of_view(self, site: MaybeSite, obj: Any, name: str, args: tuple[Any, ...], kwargs: dict[str, Any], fn: Any) -> None:
        self.context.arrays.memory_read(site, obj)
        self.context.arguments.read(site, args, kwargs)

    def _is_stream(self, obj: Any, kind: int, name: str, args: tuple[Any, ...], fn: Any) -> bool:
        return policy.module_facts(type(obj)).streams

    def _of_stream(
        self, site: MaybeSite, obj: Any, name: str, args: tuple[Any, ...], kwargs: dict[str, Any], fn: Any
    ) -> None:
        self.context.outside.host_call(site, fn, Verdict.IO)

    def _of_writer(
        self, site: MaybeSite, obj: Any, name: str, args: tuple[Any, ...], kwargs: dict[str, Any], fn: Any
    ) -> None:
        if not self.context.streams.method(site, obj, name, args, kwargs):
            self.context.outside.host_call(site, fn, Verdict.UNKNOWN if type(obj) is CSV_WRITER else Verdict.IO)

    def _is_writer(self, obj: Any, kind: int, name: str, args: tuple[Any, ...], fn: Any) -> bool:
        return type(obj) in STREAMS or type(obj) is CSV_WRITER

    def _is_array(self, obj: Any, kind: int, name: str, args: tuple[Any, ...], fn: Any) -> bool:
        return self.context.array_values.varies(obj)

    def _of_array(
        self, site: MaybeSite, obj: Any, name: str, args: tuple[Any, ...], kwargs: dict[str, Any], fn: Any
    ) -> None:
        if not self.context.host_calls.method(site, obj, name, args, kwargs):
            self._of_opaque(site, obj, name, args, kwargs, fn)

    def _is_iterator(self, obj: Any, kind: int, name: str, args: tuple[Any, ...], fn: Any) -> bool:
        return hasattr(type(obj), "__next__")

    def _is_of_torch(self, obj: Any, kind: int, name: str, args: tuple[Any, ...], fn: Any) -> bool:
        return policy.module_of(type(obj)).startswith("torch")

    def _of_torch(
        self, site: MaybeSite, obj: Any, name: str, args: tuple[Any, ...], kwargs: dict[str, Any], fn: Any
    ) -> None:
        self.context.stack.torch = (site, fn)

    def _is_of_host(self, obj: Any, kind: int, name: str, args: tuple[Any, ...], fn: Any) -> bool:
        return policy.verdict(fn) in (Verdict.HOST, Verdict.IO)

    def _of_host(self, site: MaybeSite, obj: Any, name: str, args: tuple[Any, ...], kwargs: dict[str, Any], fn: Any) -> None:
        self.context.outside.host_call(site, fn, policy.verdict(fn))

    def _is_plain_numpy(self, obj: Any, kind: int, name: str, args: tuple[Any, ...], fn: Any) -> bool:
        return _is_of_numpy(obj) and (kinds.is_numpy_value(type(obj)) or self.context.arrays.is_plain_array(obj))

    def _of_numpy(
        self, site: MaybeSite, obj: Any, name: str, args: tuple[Any, ...], kwargs: dict[str, Any], fn: Any
    ) -> None:
        self.context.outside.call_numpy(site, fn, args, kwargs)

    def _depends_on_refused_call(self, obj: Any, kind: int, name: str, args: tuple[Any, ...], fn: Any) -> bool:
        return _is_of_numpy(obj) and self.journal.graph_incomplete

    def _is_from_outside(self, obj: Any, kind: int, name: str, args: tuple[Any, ...], fn: Any) -> bool:
        return _is_of_numpy(obj) or self.refgraph.node(obj) is not None

    # -- what any of them may do ---------------------------------------------------------------------------------------

    def _unknown(self, site: MaybeSite, obj: Any, name: str, args: tuple[Any, ...], kwargs: dict[str, Any], fn: Any) -> None:
        self.context.outside.host_call(site, fn, Verdict.UNKNOWN)

    def _nothing(
        self, site: MaybeSite, obj: Any, name: str, args: tuple[Any, ...], kwargs: dict[str, Any], fn: Any
    ) -> None: ...


def _is_of_numpy(obj: Any) -> bool:
    return type(obj).__module__ == "numpy"


_Applies = Callable[[MethodCalls, Any, int, str, tuple[Any, ...], Any], bool]
_Handler = Callable[[MethodCalls, Any, Any, str, tuple[Any, ...], dict[str, Any], Any], None]
# In order of precedence: which call it is, and its handler. Predicates change nothing.
_CASES: tuple[tuple[_Applies, _Handler], ...] = (
    (MethodCalls._writes_attribute, MethodCalls._attribute_write),
    (MethodCalls._reads_attribute, MethodCalls._attribute_read),
    (MethodCalls._lists_subclasses, MethodCalls._unknown),
    (MethodCalls._has_no_effect, MethodCalls._nothing),
    (MethodCalls._binds_function, MethodCalls._nothing),
    (MethodCalls._is_value, MethodCalls._of_value),
    (MethodCalls._is_container, MethodCalls._of_container),
    (MethodCalls._pickles, MethodCalls._unknown),
    (MethodCalls._changes_error, MethodCalls._unknown),
    (MethodCalls._is_generator, MethodCalls._of_iterator),
    (MethodCalls._is_writer, MethodCalls._of_writer),
    (MethodCalls._is_array, MethodCalls._of_array),
    (MethodCalls._is_opaque, MethodCalls._of_opaque),
    (MethodCalls._is_any, MethodCalls._of_object),
)
# The same for opaque objects. An object that the region created is assumed to have a known state.
_OPAQUE_CASES: tuple[tuple[_Applies, _Handler], ...] = (
    (MethodCalls._is_of_threads, MethodCalls._nothing),
    (MethodCalls._is_context_variable, MethodCalls._context_variable),
    (MethodCalls._is_view, MethodCalls._of_view),
    (MethodCalls._is_stream, MethodCalls._of_stream),
    (MethodCalls._is_iterator, MethodCalls._of_iterator),
    (MethodCalls._is_of_torch, MethodCalls._of_torch),
    (MethodCalls._is_of_host, MethodCalls._of_host),
    (MethodCalls._is_plain_numpy, MethodCalls._of_numpy),
    (MethodCalls._depends_on_refused_call, MethodCalls._nothing),
    (MethodCalls._is_from_outside, MethodCalls._unknown),
)
