"""Dispatch: selects the handler of a call by the kind of its callee. Key type: Dispatch."""

from __future__ import annotations

import functools
import types
import weakref
from typing import Any

import torch

from magpy_core._compat.cpython.layout import bound_object
from magpy_core._compat.torch.function_apply import applied_class
from magpy_core._compat.torch.mode_reads import MODE_READS, arguments_of, asks_to_dispatch
from magpy_core._compat.torch.scripts import SCRIPTED
from magpy_core.findings import HERE
from magpy_core.knowledge import policy
from magpy_core.knowledge.callables import LRU_CACHE, entry
from magpy_core.knowledge.modules import Verdict
from magpy_core.knowledge.torch_functions import reads_state
from magpy_core.monitor.events import MaybeSite
from magpy_core.recording.callees import BUILTIN_FUNCTION, DESCRIPTOR, GETTERS, consumer_of, number_read_from
from magpy_core.recording.calls.streams import writes_text
from magpy_core.recording.tracker import Tracker
from magpy_core.refgraph import kinds, lookup
from magpy_core.refgraph.draws import method_of_stream, stream_of
from magpy_core.refgraph.kinds import is_a
from magpy_core.refgraph.stand_in import StandIn, call_of

_COMPUTING = frozenset({"torch", "numpy"})  # packages whose functions may be recorded without their events
_MOST_OPERATIONS = 30_000  # of a graph: a compiler takes hours for more, and the recording is slow


def _moves_texts(fn: Any) -> bool:
    """Whether a callee only moves texts, prints them, or is code whose use of them has events."""
    if type(fn) is types.BuiltinFunctionType and kinds.kind_of(fn.__self__) in kinds.CONTAINERS:
        return True  # `calls.containers` knows what its methods use
    if type(fn) is types.BuiltinFunctionType and writes_text(fn):
        return True
    target = fn.__func__ if type(fn) is types.MethodType else fn
    if type(target) is not types.FunctionType:
        return target is print or target is isinstance or target is type
    return (target.__module__ or "").partition(".")[0] not in _COMPUTING


class Dispatch(Tracker):
    """Handler of calls and their results."""

    def call(self, site: MaybeSite, fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any] | None) -> None:
        self.journal.site = site
        if self.context.decisions.are_too_many:
            self.context.decisions.give_up(site)
        if len(self.ledger.ops.graph.nodes) > _MOST_OPERATIONS:
            text = f"{HERE} runs in a call of more than {_MOST_OPERATIONS:,} operations, too many for one graph."
            self.journal.abort(text, site, "MP915", "Compile what a round of the loop calls, instead of the loop.")
        self.context.pauses.in_call = False
        self.context.stack.enter(site, consumer_of(fn), number_read_from(fn, args))
        if self.context.stack.torch is not None:
            self.context.torch_calls.missed()
        if not self.context.varying_texts.makes(site, fn, args, kwargs or {}):
            if self.ledger.scalars.has_texts and not _moves_texts(fn):
                inside = fn is len or (entry(fn).keeps_elements and fn is not dict)  # a dict hashes keys
                used = [a for a in args if type(a) is str] if inside else [fn, args, kwargs or {}]
                self.context.numbers.escape_texts(site, *used)
            self.dispatch(site, fn, args, kwargs or {})
        if self.ledger.ops.op_depth and self.context.stack.torch is not None:
            self.context.torch_calls.inside_node(fn)
        if self.context.stack.torch is not None and not self.context.stack.expects and not kwargs:
            if self.context.devices.asks(site, fn, args):
                self.context.stack.torch = None
            elif reads_state(fn, args):
                self.context.stack.torch = None
                self.context.outside.expect_setting(site, fn, args, refuses=True)

    def call_result(self, site: MaybeSite, result: Any) -> Any:
        """The call at ``site`` has returned ``result``; returns the program's result."""
        self.context.pauses.in_call = False
        call = self.context.stack.leave(site)
        if self.context.stack.torch is not None and self.context.stack.torch[0] is site:
            self.context.torch_calls.missed()  # before another operator is taken for it
        if call is None:
            return result
        if call.returned is not None:
            return call.returned(result)
        return result if call.receive is None else call.receive(result)

    def dispatch(self, site: MaybeSite, fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        tp = type(fn)
        if stream_of(fn) is not None and self.context.outside.draw(site, fn, args, kwargs):
            return
        if tp is types.FunctionType:
            method = method_of_stream(fn, args)
            if method is None or not self.context.outside.draw(site, method, args[1:], kwargs):
                self.context.python.call(site, fn, args, kwargs)
        elif tp is types.MethodType:
            node = self.refgraph.node(fn)
            if node is not None:
                self.context.values.read(self.sources.make("field", node.source, "__func__"), fn.__func__, site)
                self.context.values.read(self.sources.make("field", node.source, "__self__"), fn.__self__, site)
            if (applied := applied_class(fn)) is not None:
                self.context.one_node.call_function_class(site, applied, args, kwargs)
            else:
                self.dispatch(site, fn.__func__, (fn.__self__, *args), kwargs)
        elif tp is types.MethodWrapperType and fn.__name__ == "__getattribute__" and type(fn.__self__) is types.ModuleType:
            # the modules of torch.backends find attributes that are not settings this way
            self.context.reads.attr(fn.__self__, args[0], site)
        elif tp in BUILTIN_FUNCTION or is_a(fn, types.BuiltinFunctionType):
            if (applied := applied_class(fn)) is not None:
                self.context.one_node.call_function_class(site, applied, args, kwargs)
            else:
                self._builtin(site, fn, args, kwargs)
        elif tp in DESCRIPTOR:
            self._descriptor(site, fn, args, kwargs)
        elif is_a(fn, type):
            self.context.class_calls.call(site, fn, args, kwargs)
        elif is_a(fn, StandIn):
            target = self.context.values.behind(fn, site)
            if not is_a(call_of(fn), types.FunctionType):  # else its frame refuses: `magpy_core.disable`
                self.dispatch(site, target, args, kwargs)
        elif tp is functools.partial:
            self._partial(site, fn, args, kwargs)
        elif tp is LRU_CACHE:
            self.context.caches.call(site, fn, args, kwargs)
        elif is_a(fn, weakref.ref):
            self.context.lifetimes.call_weakref(site, fn)
        elif is_a(fn, GETTERS):
            self.context.natives.call_getter(site, fn, args)
        elif is_a(fn, SCRIPTED):
            self.context.scripts.call(site, fn)
        elif is_a(fn, (torch._ops.OpOverload, torch._ops.OpOverloadPacket)):
            self.context.stack.torch = (site, fn)
        else:
            self._instance(site, fn, args, kwargs)

    def constructed_natively(self, cls: type) -> None:
        """Native code is about to call ``cls``."""
        self.context.scripts.tensors_from_native_code(cls)

    def _partial(self, site: MaybeSite, fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        node = self.refgraph.node(fn)
        if node is not None:
            for name in ("func", "args", "keywords"):
                self.context.values.read(self.sources.make("field", node.source, name), getattr(fn, name), site)
            for part in (fn.args, fn.keywords):
                self.context.host.guard_contents(part)
        self.dispatch(site, fn.func, (*fn.args, *args), {**fn.keywords, **kwargs})

    def _instance(self, site: MaybeSite, fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """An object with ``__call__``: a Python method is entered, a native one is unknown."""
        self.context.roots.node_for(fn)
        raw, owner = lookup.class_lookup(type(fn), "__call__")
        if policy.module_of(type(fn)).partition(".")[0] == "numpy":
            if kinds.is_numpy_value(type(fn)):
                self.context.outside.call_numpy(site, fn, args, kwargs)
            else:  # numpy.vectorize etc.: native code calls Python
                self.context.outside.host_call(site, fn, Verdict.UNKNOWN)
        elif is_a(raw, types.FunctionType) and owner is not None:
            self.context.classes.member(type(fn), "__call__", site)
            if self.context.python.is_library(raw.__code__):
                self.context.arguments.read(site, args, kwargs)
        elif policy.module_of(type(fn)).startswith("torch"):
            self.context.stack.torch = (site, fn)
        elif policy.verdict(fn) == Verdict.PURE or policy.module_facts(type(fn)).pure_objects:
            self.context.numbers.escape_all(site, args, kwargs)
            self.context.arguments.read(site, args, kwargs)
        else:
            self.context.outside.host_call(site, fn, policy.verdict(fn))

    def _builtin(self, site: MaybeSite, fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        owner = fn.__self__
        if type(fn) is types.BuiltinFunctionType and fn in MODE_READS:
            self._modes_read(site, fn, args)
            return
        if fn.__name__ == "from_numpy" and len(args) == 1 and self.context.arrays.is_plain_array(args[0]):
            self.context.constructors.from_array(site, args[0])
            self.context.arrays.mark_shared(args[0])
        elif fn.__name__ == "from_numpy" and not self.ledger.ops.op_depth:
            makes = fn is torch.from_numpy and len(args) == 1
            if not makes or not self.context.array_values.makes_tensor(fn, args[0], {}, site):
                self.context.arrays.refuse_outside(site)
        elif bound_object(fn) is None:
            self.context.native.call(site, fn, args, kwargs)
        elif is_a(owner, torch.Tensor):
            self.context.stack.torch = (site, fn)
        elif is_a(owner, type):
            self.context.native.class_method(site, fn, owner, args, kwargs)
        else:
            self.context.methods.call(site, owner, fn.__name__, args, kwargs, fn)

    def _modes_read(self, site: Any, fn: Any, args: tuple[Any, ...]) -> None:
        """The program asks which modes are in force: MagPy's own don't count, except for a function of torch that passes
        itself to them."""
        if asks_to_dispatch(site.code):
            return
        for value in arguments_of(fn, args):
            self.context.classes.member(type(value), "__torch_function__", site)
        own = (self.ledger.ops.recorder, self.ledger.ops.shadow)
        self.context.stack.expect(lambda result: MODE_READS[fn](fn, result, args, own), self.context.scripts.asks_for_modes)

    def _descriptor(self, site: MaybeSite, fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """``list.append(x, 1)``, ``object.__setattr__(o, "a", 1)``: a method called through its class."""
        if args and is_a(args[0], torch.Tensor) and issubclass(type(args[0]), fn.__objclass__):
            self.context.stack.torch = (site, fn)
        elif args and is_a(args[0], fn.__objclass__):
            self.context.methods.call(site, args[0], fn.__name__, args[1:], kwargs, fn)
        else:
            self.context.arguments.read(site, args, kwargs)
