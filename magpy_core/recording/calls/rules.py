"""Rules: builtin functions that need special handling (``len``, ``getattr``, ``isinstance``, ``print``, ...).

Key type: Rules.
"""

from __future__ import annotations

import _abc  # type: ignore[import-not-found]
import _warnings
import abc
import builtins
import collections
import functools
import gc
import itertools
import operator
import sys
import types
from collections.abc import Callable
from typing import Any, Protocol

import torch

from magpy_core._compat.torch.state_changers import SET_SAVED_TENSORS_HOOKS
from magpy_core.findings import HERE
from magpy_core.guards import kinds as guard
from magpy_core.knowledge import policy
from magpy_core.knowledge.callables import entry
from magpy_core.knowledge.modules import Verdict
from magpy_core.monitor.events import MaybeSite
from magpy_core.monitor.record import user_setting
from magpy_core.opgraph.scalars import BINARY
from magpy_core.recording.call_stack import TensorLength
from magpy_core.recording.callees import is_copying
from magpy_core.recording.facts.containers import VaryingLength
from magpy_core.recording.ledger import Output
from magpy_core.recording.printing import frozen, printable
from magpy_core.recording.tracker import Tracker
from magpy_core.refgraph import kinds, lookup, natives
from magpy_core.refgraph.counters import position
from magpy_core.refgraph.iterators import is_iterator, remaining, sequence_of, upcoming
from magpy_core.refgraph.kinds import is_a
from magpy_core.refgraph.streams import stream_of

_MOST_COPIED = 12  # maximum number of containers in one copied tree: a guard checks that all are distinct
_PROTOCOL = type(Protocol)
# Classes whose instances include tensors with this attribute.
_MARKING: dict[type, str] = {type(torch.nn.Parameter): "_is_param", type(torch.nn.Buffer): "_is_buffer"}
_COPIED = frozenset({list, tuple, dict, set, frozenset, collections.OrderedDict})


def _classes(tree: Any) -> list[type]:
    """The classes in the second argument of ``isinstance``."""
    if is_a(tree, tuple):
        return [cls for part in tree for cls in _classes(part)]
    if is_a(tree, types.UnionType):
        return _classes(tree.__args__)
    return [tree] if is_a(tree, type) else []


def _plain_data(tree: Any, containers: list[Any]) -> bool:
    """Whether a tree consists of distinct built-in containers and scalars; appends the containers to ``containers``."""
    if type(tree) not in _COPIED:
        return kinds.kind_of(tree) == kinds.SCALAR
    if any(tree is known for known in containers) or len(tree) > 1000:
        return False
    containers.append(tree)
    parts = [*tree.keys(), *tree.values()] if is_a(tree, dict) else tree
    return all(_plain_data(part, containers) for part in parts)


Rule = Callable[["Rules", Any, Any, tuple[Any, ...], dict[str, Any]], None]
RULES: dict[Any, Rule] = {}
"""Builtin function -> its rule."""


def rule(*callables: Any) -> Callable[[Rule], Rule]:
    """Register a method of Rules for these callables. It gets ``(site, fn, args, kwargs)`` before the call runs."""

    def register(method: Rule) -> Rule:
        RULES.update(dict.fromkeys(callables, method))
        return method

    return register


class Rules(Tracker):
    """One method for each builtin, or for several similar ones; `rule` registers it."""

    @rule(len)
    def rule_len(self, site: MaybeSite, fn: Any, args: Any, kwargs: Any) -> None:
        if len(args) != 1:
            return
        if is_a(args[0], torch.Tensor):
            self.context.stack.expect(TensorLength(self.ledger.scalars))
            return
        obj = args[0]
        if self.context.host_calls.takes(obj) and self.context.host_calls.makes_of_list(site, fn, args, kwargs):
            return
        if self.context.array_values.varies(obj) and not self.context.array_values.has_fixed_shape(obj):
            if self.context.host_calls.makes(site, fn, args, kwargs):
                return
        if self.context.array_values.shows(obj, "shape", site):
            return
        self.context.arrays.memory_read(site, obj)
        if type(obj) is torch.UntypedStorage:
            self.context.reads.attr(obj, "__len__", site)
        if kinds.kind_of(obj) == kinds.OBJECT:
            self.context.classes.member(type(obj), "__len__", site)
        node = self.context.roots.node_for(obj)
        if node is not None and node.kind in kinds.CONTAINERS:
            varying = self.context.contents.length(node, site)
            if varying is not None:
                self._expect_length(site, varying)

    def _expect_length(self, site: MaybeSite, varying: VaryingLength) -> None:
        source, size, grown, most = varying.source, varying.at_entry, varying.grown, varying.most
        expected = size + grown if most is None else min(size + grown, most)

        def receive(result: Any) -> Any:
            if type(result) is not int or result != expected:
                return result
            self.refgraph.read(source, guard.TYPE, int, site)
            length = self.ledger.scalars.source(source, size)
            sym = self.ledger.scalars.call(BINARY["+"], (length, grown), size + grown) if grown else length
            if most is not None and grown:
                sym = self.ledger.scalars.call(min, (sym, most), result)
            return self.ledger.scalars.bind(result, sym)

        def unobserved() -> None:
            self.ledger.learned.exact.add(source.path)
            self.refgraph.read(source, guard.EQUAL, size, site)

        self.context.stack.expect(receive, unobserved)

    @rule(isinstance, issubclass)
    def rule_isinstance(self, site: MaybeSite, fn: Any, args: Any, kwargs: Any) -> None:
        if args:
            self.context.contents.type_of(args[0], site)
            self.context.classes.shape(type(args[0]) if fn is isinstance or not is_a(args[0], type) else args[0], site)
            if fn is isinstance and kinds.kind_of(args[0]) == kinds.OBJECT:
                raw, _ = lookup.class_lookup(type(args[0]), "__class__")
                if is_a(raw, property):
                    self.context.classes.member(type(args[0]), "__class__", site)
            self.context.arguments.read(site, args[1:], {})
            for cls in _classes(args[1:]):
                self.abstract_class(cls, site)
                if type(cls) in _MARKING and is_a(args[0], torch.Tensor):
                    self.context.reads.attr(args[0], _MARKING[type(cls)], site)

    @rule(_abc._abc_instancecheck, _abc._abc_subclasscheck)
    def rule_abstract_class(self, site: MaybeSite, fn: Any, args: Any, kwargs: Any) -> None:
        """What ``isinstance`` asks an abstract class: it looks at the class of the object, not into it."""
        for value in args:
            self.context.contents.type_of(value, site)
            self.context.classes.shape(value if is_a(value, type) else type(value), site)

    def abstract_class(self, cls: type, site: MaybeSite) -> None:
        """Guard registrations for an abstract class; refuse a protocol, whose instances depend on their attributes."""
        if is_a(cls, abc.ABCMeta):
            root = self.context.roots.const_root(abc.get_cache_token, "abstract classes").source
            self.refgraph.read(self.sources.make("setting", root, ()), guard.EQUAL, abc.get_cache_token(), site)
        if is_a(cls, _PROTOCOL) and cls.__dict__.get("_is_protocol"):
            text = f"{HERE} tests for the protocol `{cls.__name__}`: MagPy can't check its members."
            self.journal.refuse("MP111", text, site=site, hint="Test for a class, or use `hasattr`.")

    @rule(getattr, hasattr)
    def rule_getattr(self, site: MaybeSite, fn: Any, args: Any, kwargs: Any) -> None:
        if len(args) >= 2 and is_a(args[1], str):
            self.context.reads.attr(args[0], args[1], site)

    @rule(setattr, delattr)
    def rule_setattr(self, site: MaybeSite, fn: Any, args: Any, kwargs: Any) -> None:
        if len(args) >= 2 and is_a(args[1], str):
            self.context.writes.attr(args[0], args[1], site, *args[2:3], deleted=fn is delattr)

    @rule(SET_SAVED_TENSORS_HOOKS)
    def rule_saved_tensors_hooks(self, site: MaybeSite, fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        if not args or policy.module_of(args[0]) != "torch.utils.checkpoint":  # checkpoints are recorded as such
            text = f"{HERE} sets hooks for saved tensors: a graph can't contain them."
            self.journal.refuse("MP118", text, hint="Set them around the region.", site=site)

    @rule(id, hash)
    def rule_id(self, site: MaybeSite, fn: Any, args: Any, kwargs: Any) -> None:
        if len(args) != 1:
            return
        obj = args[0]
        if fn is id and is_copying(site):
            if (node := self.refgraph.node(obj)) is not None:
                node.must_be_distinct = True
            return
        kind = kinds.kind_of(obj)
        if fn is hash and kind in (kinds.SCALAR, kinds.IDENTITY, kinds.TUPLE, kinds.SET):
            self.context.numbers.escape_all(site, obj)
            self.context.arguments.read(site, args, kwargs)
            return
        node = self.refgraph.node(obj)
        if fn is hash and kind == kinds.OBJECT:
            self.context.classes.special_methods(obj, site)
            raw, _ = lookup.class_lookup(type(obj), "__hash__")
            if is_a(raw, types.FunctionType):
                self.context.classes.member(type(obj), "__hash__", site)
                return
        if node is not None:
            self.refgraph.read(node.source, guard.IDENTITY, obj, site)
        else:
            self.journal.refuse(
                "MP103", f"{HERE} of an object created inside the region is different on every call.", site=site
            )

    @rule(operator.index)
    def rule_index(self, site: MaybeSite, fn: Any, args: Any, kwargs: Any) -> None:
        if len(args) != 1 or type(args[0]) is not int:  # it returns an int itself, with its symbol
            self.context.numbers.escape_all(site, args, kwargs)
            self.context.arguments.read(site, args, kwargs)

    @rule(repr, ascii, format)
    def rule_repr(self, site: MaybeSite, fn: Any, args: Any, kwargs: Any) -> None:
        self.context.numbers.escape_all(site, args, kwargs)
        self.context.arguments.read(site, args, kwargs)
        for a in args:
            self.context.texts.formatted(a, site)

    @rule(sorted, sum, min, max, any, all, iter, functools.reduce)
    def rule_iterate(self, site: MaybeSite, fn: Any, args: Any, kwargs: Any) -> None:
        if entry(fn).computes and self.context.numbers.carries(args, kwargs):
            self.context.numbers.escape_raising(fn, args, site)
            self.context.numbers.expect_computed(site, fn, args)
            return
        on_stack = bool(args) and self.context.host_calls.takes(args[0])
        if not on_stack and self.context.folds.makes(site, fn, args, kwargs):
            return
        if self.context.host_calls.makes_of_list(site, fn, args, kwargs):
            return
        self.context.numbers.escape_all(site, args, kwargs)
        if self.ledger.scalars and (fn is functools.reduce or callable(kwargs.get("key"))):
            self.context.numbers.escape_hidden(site)  # numbers pass between the callback and native code
        for a in args:
            self.context.flow.iterate_value(a, site, carry=fn is iter)
            if fn is not iter and kinds.kind_of(a) in kinds.CONTAINERS:
                for v in natives.elements(a):
                    if kinds.kind_of(v) == kinds.OBJECT:
                        self.context.classes.special_methods(v, site)
        if fn is not iter:  # it reads the elements and everything in them; for a dict, only the keys
            self.context.callbacks.elements_of(site, (a for a in args if not is_a(a, dict)))
        self.context.arguments.read(site, (), kwargs)

    def bisects(self, site: MaybeSite, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        """Whether a dynamic number is about to be looked up in a sequence: the result depends on how it compares with each
        element."""
        if (
            kwargs
            or len(args) != 2
            or type(args[0]) not in (list, tuple)
            or not self.context.numbers.looks_up(args[1], args[0])
        ):
            return False
        if (node := self.context.roots.node_for(args[0])) is not None:
            self.context.contents.read_all(node, site)
        for element in natives.elements(args[0]):
            self.context.numbers.compare(operator.lt, args[1], element, site)
            self.context.numbers.compare(operator.lt, element, args[1], site)
        return True

    @rule(next)
    def rule_next(self, site: MaybeSite, fn: Any, args: Any, kwargs: Any) -> None:
        if args and not self._counts(site, args[0]) and not (len(args) == 1 and self._takes(site, args[0])):
            self.context.container_calls.read_iterator(args[0], site)

    def _counts(self, site: MaybeSite, counter: Any) -> bool:
        """Whether a counter from outside is about to be advanced: its number is symbolic, and replay advances it, too."""
        node = self.refgraph.node(counter)
        if node is None or type(counter) is not itertools.count or (now := position(counter)) is None:
            return False
        _, taken, _ = self.refgraph.advanced.get(id(counter), (node, 0, site))
        self.refgraph.advanced[id(counter)] = node, taken + 1, site
        self.ledger.other_effects += 1
        source = self.sources.make("position", node.source, None)
        self.refgraph.read(source, guard.TYPE, int, site)
        first = self.ledger.scalars.source(source, now - taken)
        sym = self.ledger.scalars.call(BINARY["+"], (first, taken), now) if taken else first
        self.context.stack.expect(
            lambda result: self.ledger.scalars.bind(result, sym) if type(result) is int else result,
            lambda: self.context.numbers.escape(sym, site),
        )
        return True

    def _takes(self, site: MaybeSite, iterator: Any) -> bool:
        """Whether an iterator from outside is about to return an element of a list or tuple: a guard looks at it before, and
        replay takes it, too."""
        node = self.refgraph.node(iterator)
        if node is None or not is_iterator(iterator):
            return False
        _, taken, _ = self.refgraph.advanced.get(id(iterator), (node, 0, site))
        left = remaining(iterator)
        if left:
            try:
                held, value = self.refgraph.node(sequence_of(iterator)), upcoming(iterator, 0)
            except LookupError:
                return False
            if held is not None and held.snapshot is not None:
                return False  # the region has changed what it goes over
            source = self.sources.make("upcoming", node.source, taken)
            read = self.context.values.read
            self.context.stack.expect(
                lambda result: read(source, result, site, to_program=True), lambda: read(source, value, site, exact=True)
            )
        else:
            self.refgraph.read(self.sources.make("remaining", node.source, None), guard.EQUAL, taken, site)
        node.must_be_distinct = True  # of two that become one, the second would return other elements
        self.refgraph.advanced[id(iterator)] = node, taken + 1, site
        self.ledger.other_effects += 1
        return True

    @rule(builtins.__build_class__)
    def rule_build_class(self, site: MaybeSite, fn: Any, args: Any, kwargs: Any) -> None:
        """The body of a class statement runs without events: refuse."""
        text = f"The class `{args[1]}` is defined inside the region: the monitor can't follow its body."
        self.journal.refuse("MP111", text, hint="Define the class outside the region.", site=site)

    @rule(vars, dir)
    def rule_vars(self, site: MaybeSite, fn: Any, args: Any, kwargs: Any) -> None:
        node = self.context.roots.node_for(args[0]) if args else None
        if node is None:
            return
        if fn is vars and kinds.kind_of(node.obj) != kinds.IDENTITY:
            self.context.reads.getset(node, node.obj, "__dict__", site)
        else:
            hint = "Read the attributes by name: `settings.scale`, or `getattr(settings, name)` for each name of a list."
            self.journal.refuse(
                "MP111", f"{HERE} reads all names of an object: MagPy can't check them all.", hint=hint, site=site
            )

    @rule(_warnings.warn)
    def rule_warn(self, site: MaybeSite, fn: Any, args: Any, kwargs: Any) -> None:
        self.context.output.warn(site, args, kwargs)

    @rule(print)
    def rule_print(self, site: MaybeSite, fn: Any, args: Any, kwargs: Any) -> None:
        if any(is_a(a, torch.Tensor) for a in args):
            hint = "Print it after the region, or print numbers (`.item()`): those are printed when the graph has run."
            text = f"{HERE} formats a tensor's values as text: a graph can't do that."
            self.journal.refuse("MP102", text, hint=hint, site=site)
            return
        unprintable = [a for a in args if not printable(a)]
        file = kwargs.get("file")
        if unprintable or set(kwargs) - {"end", "sep", "flush", "file"} or not self._can_print_to(file):
            if unprintable:
                text = f"{HERE} needs the `__repr__` of a `{type(unprintable[0]).__name__}`: compiled code can't call it."
            else:
                text = f"{HERE} passes options to `print` that compiled code can't repeat."
            hint = "Print numbers, strings, and containers of them, or print outside the region."
            self.journal.refuse("MP114", text, site=site, hint=hint)
            return
        self.context.arguments.read(site, args, {k: v for k, v in kwargs.items() if k != "file"})
        if file is not None:
            self.context.streams.guard_open(file, site)
        payload = (tuple(map(frozen, args)), {k: frozen(v) for k, v in kwargs.items()})
        self.ledger.outputs.append(Output("print", payload, site))
        self.journal.places.remember(None, site)
        self.context.pauses.during_call()

    def _can_print_to(self, file: Any) -> bool:
        return file is None or (stream_of(file) is file and self.context.streams.can_write(file))

    def copies(self, site: MaybeSite, tree: Any) -> bool:
        """Handle ``copy.deepcopy`` of plain data as one operation, because its frames compare ids. False for other data."""
        containers: list[Any] = []
        if not _plain_data(tree, containers) or len(containers) > _MOST_COPIED:
            return False
        self.context.numbers.escape_all(site, tree)
        self.context.arguments.read(site, (tree,), {})
        nodes = [node for c in containers if (node := self.refgraph.node(c)) is not None]
        for i, one in enumerate(nodes):
            for other in nodes[:i]:  # an object that occurs twice is copied once
                self.refgraph.read(one.source, guard.NOT_SAME_AS, other.source, site)
        self.context.pauses.during_call()
        return True

    @rule(sys.getrecursionlimit, sys.getswitchinterval, gc.isenabled, gc.enable, gc.disable)
    def rule_process(self, site: MaybeSite, fn: Any, args: Any, kwargs: Any) -> None:
        """Process settings that a recording changes: the program gets the original value, and the call is refused."""
        outside = self.context.outside
        if fn is gc.enable or fn is gc.disable:
            outside.collecting = fn is gc.enable  # restored at the recording's end
        else:
            self.context.stack.expect(lambda result: outside.collecting if fn is gc.isenabled else user_setting(fn, result))
        outside.host_call(site, fn, Verdict.HOST)
