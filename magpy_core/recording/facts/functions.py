"""Functions: code, defaults, closures and attributes of Python functions. Key type: Functions."""

from __future__ import annotations

import inspect
import types
from dataclasses import field
from typing import Any

from magpy_core.findings import HERE, Unsupported
from magpy_core.guards import kinds as guard
from magpy_core.knowledge.policy import module_of
from magpy_core.monitor.events import MaybeSite
from magpy_core.recording.tracker import Tracker
from magpy_core.refgraph import kinds, lookup
from magpy_core.refgraph.fields import ABSENT, cell_value, instance_dict
from magpy_core.refgraph.kinds import is_a
from magpy_core.refgraph.node import Node

_FUNCTION_TEXTS = frozenset({"__name__", "__qualname__", "__module__", "__doc__"})
_FUNCTION_PARTS = frozenset({"__defaults__", "__code__"})
_FUNCTION_TABLES = frozenset({"__kwdefaults__", "__annotations__"})
_NAMED = "Use a name for what it refers to: an argument, an attribute or a global variable."
_HIDDEN_PARTS = frozenset({"__closure__", "__globals__", "__dict__", "__builtins__"})


class Functions(Tracker):
    """Guards functions that are called or inspected."""

    _guarded: set[int] = field(default_factory=set, init=False)
    # code of functions that are known from calls or guards
    known_codes: set[types.CodeType] = field(default_factory=set, init=False)
    # functions, and whether the region created them, by id
    _attributes: dict[int, tuple[Any, bool]] = field(default_factory=dict, init=False)

    def guard(self, fn: Any) -> None:
        """Guard a Python function's code and defaults; add nodes for its mutable defaults and its closure's cells."""
        if is_a(fn, property):
            for part in (fn.fget, fn.fset, fn.fdel):
                self.guard(part)
            return
        fn = fn.__func__ if is_a(fn, (staticmethod, classmethod)) else fn
        if not is_a(fn, types.FunctionType) or id(fn) in self._guarded:
            return
        self._guarded.add(id(fn))
        self.note_code(fn.__code__)
        root = self.context.roots.const_root(fn).source
        if not module_of(fn).startswith("torch."):
            self.refgraph.read(self.sources.make("field", root, "__code__"), guard.IS, fn.__code__, self.journal.site)
        for name, cell in zip(fn.__code__.co_freevars, fn.__closure__ or (), strict=True):
            node = self.refgraph.add(cell, self.sources.const(cell, name))
            if name == "__class__" and node.snapshot is None and not module_of(fn).startswith("torch."):
                if (value := cell_value(cell)) is ABSENT:  # ``super()`` reads it without an event
                    self.journal.skip_call("an outside variable had no value")
                else:
                    self.refgraph.read(self.sources.make("cell", node.source, None), guard.IS, value, self.journal.site)
        if fn.__defaults__:
            defaults = self.sources.make("field", root, "__defaults__")
            self.refgraph.read(defaults, guard.IS, fn.__defaults__, self.journal.site)
            for i, v in enumerate(fn.__defaults__):
                if kinds.kind_of(v) not in (kinds.SCALAR, kinds.IDENTITY):
                    self.refgraph.add(v, self.sources.item(defaults, i))
                elif is_a(v, kinds.REFERRING):
                    self.context.classes.identity_read(v, self.journal.site)
        named = self.sources.make("field", root, "__kwdefaults__")
        for k, v in (fn.__kwdefaults__ or {}).items():
            self.context.values.read(self.sources.item(named, k), v, self.journal.site)

    def note_code(self, code: types.CodeType) -> None:
        """Note the code of a called function. Refuse module code (``FunctionType(compile(...), names)``), which runs without
        a clone because its variables are in a dict."""
        self.known_codes.add(code)
        if not code.co_flags & inspect.CO_OPTIMIZED and not self.journal.refused:
            text = f"`{code.co_name}`, a function made from module code, runs in a way the monitor can't follow."
            self.journal.refuse("MP111", text, hint="Put the code into a `def`.")

    def code_constants(self) -> dict[int, Any]:
        """The tuples and frozensets among the constants of code, by id: they are the same objects at every call."""
        waiting: list[Any] = [constant for code in self.known_codes for constant in code.co_consts]
        found: dict[int, Any] = {}
        while waiting:
            constant = waiting.pop()
            if type(constant) in (tuple, frozenset) and id(constant) not in found:
                found[id(constant)] = constant
                waiting += constant
        return found

    def read_wrapper_attr(self, obj: Any, name: str, site: MaybeSite) -> None:
        """An attribute of a property or of a function's wrapper written in C."""
        root = self.context.roots.const_root(obj).source
        value = getattr(obj, name, ABSENT)
        if value is not ABSENT:
            if not is_a(value, (types.BuiltinFunctionType, types.MethodType, types.MethodWrapperType, dict)):
                self.context.values.read(self.sources.make("field", root, name), value, site)
        elif instance_dict(obj) is not None:
            self.context.roots.guard_absent(root, name, site)

    def read_attr(self, fn: Any, name: str, site: MaybeSite) -> None:
        if name == "__dict__":
            self.attributes(fn)  # reads of the dict are observed
        elif name in _HIDDEN_PARTS:
            text = f"{HERE} reads `{name}` of a function: the monitor can't follow what is reached through it."
            self.context.age.only_inside.setdefault(id(fn), (fn, Unsupported("MP111", text, hint=_NAMED), site))
        elif not lookup.missing(lookup.class_lookup(types.FunctionType, name)[0]):
            if (node := self.refgraph.node(fn)) is not None and id(fn) not in self.context.age.only_inside:
                self._read_field(fn, node, name, site)
        elif (table := self.attributes(fn)) is not None:
            now = fn.__dict__.get(name, ABSENT)
            if table.snapshot is not None and table.snapshot.entry(name) is not now:
                return
            if now is ABSENT:
                self.refgraph.read(self.sources.item(table.source, name), guard.ABSENT, None, site)
            else:
                slot = self.context.values.item_slot(table, name)
                self.context.values.read(self.context.roots.attribute(fn, name), now, site, slot)

    def attributes(self, fn: Any) -> Node | None:
        """The node of the attributes of a function from outside; None for a function that the region created."""
        known = self._attributes.get(id(fn))
        if known is None:
            self.context.age._new_objects = None
            known = self._attributes[id(fn)] = (fn, bool(self.context.age.is_made_inside(fn)))
        if known[1]:
            return None
        return self.refgraph.add(fn.__dict__, self.sources.make("dict", self.context.roots.const_root(fn).source, None))

    def missing_arguments(
        self, site: MaybeSite, fn: types.FunctionType, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> None:
        """Guard the absence of defaults if a call lacks arguments, because it raises only then."""
        code, defaults, named = fn.__code__, fn.__defaults__ or (), fn.__kwdefaults__ or {}
        positional = code.co_varnames[len(args) : code.co_argcount - len(defaults)]
        by_name = code.co_varnames[code.co_argcount : code.co_argcount + code.co_kwonlyargcount]
        if all(n in kwargs for n in positional) and all(n in kwargs or n in named for n in by_name):
            return
        source = self.context.roots.const_root(fn).source
        for name in ("__defaults__", "__kwdefaults__"):
            self.refgraph.read(self.sources.make("field", source, name), guard.IS, getattr(fn, name), site)

    def _read_field(self, fn: Any, node: Node, name: str, site: MaybeSite) -> None:
        source = self.sources.make("field", node.source, name)
        if name in _FUNCTION_TEXTS:
            self.refgraph.read(source, guard.EQUAL, getattr(fn, name), site)
        elif name in _FUNCTION_PARTS | _FUNCTION_TABLES:
            if name == "__annotations__" and not self.context.classes.annotations_have_values(fn, site):
                return
            if name in _FUNCTION_PARTS:
                self.refgraph.read(source, guard.IS, getattr(fn, name), site)
            self.context.values.read(source, getattr(fn, name), site)  # the program may read inside it
        else:
            self.context.roots.guard_absent(node.source, name, site)
