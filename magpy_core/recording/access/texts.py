"""Texts: what native code reads to format values as text: names of classes and functions, fields of exceptions, addresses.

Key type: Texts.
"""

from __future__ import annotations

import collections
import sys
import types
from typing import Any

import torch

from magpy_core.findings import HERE
from magpy_core.guards import kinds as guard
from magpy_core.monitor.events import MaybeSite
from magpy_core.recording.facts.classes import _CLASS_NAMES
from magpy_core.recording.tracker import Tracker
from magpy_core.recording.wording import a_type
from magpy_core.refgraph import kinds, lookup, natives
from magpy_core.refgraph.kinds import is_a

_MOST_IN_TEXT = 10_000  # maximum number of containers in formatted values


def numpy_print_options() -> str:
    """NumPy's settings for formatting numbers."""
    return repr(sys.modules["numpy"].get_printoptions())


class Texts(Tracker):
    """Guards what `str`, `repr` and formatting read."""

    def formatted(self, value: Any, site: MaybeSite) -> None:
        """Native code formats ``value`` and its contents as text: the default repr of an object contains its address."""
        todo: list[Any] = [value]
        seen: set[int] = set()
        while todo and len(seen) < _MOST_IN_TEXT:
            obj = todo.pop()
            kind = kinds.kind_of(obj)
            if is_a(obj, (BaseException, types.SimpleNamespace)) and id(obj) not in seen:
                seen.add(id(obj))
                self.context.natives.state_read(obj, site)
                if is_a(obj, BaseException):
                    self.names_in_error(obj)
                todo += (shown := obj.args if is_a(obj, BaseException) else tuple(vars(obj).values()))
                self.context.numbers.escape_all(site, shown)
            self.fields_in_text(obj, site)
            if (type(obj).__module__ or "").partition(".")[0] == "numpy":
                self.context.settings.read(site, numpy_print_options, (), numpy_print_options())
            if kinds.is_heap_type(type(obj)):  # the default text contains the class's name
                self.definition(type(obj), site)
            if kind not in kinds.CONTAINERS:
                self._address_of(obj, site)
            elif id(obj) not in seen and not is_a(lookup.class_lookup(type(obj), "__repr__")[0], types.FunctionType):
                seen.add(id(obj))
                todo += [*dict.keys(obj), *dict.values(obj)] if kind == kinds.DICT else natives.elements(obj)

    def _address_of(self, obj: Any, site: MaybeSite) -> None:
        self.definition(obj, site)
        by_default = (lookup.class_lookup(type(obj), name)[0] is vars(object)[name] for name in ("__str__", "__repr__"))
        if kinds.kind_of(obj) not in (kinds.OBJECT, kinds.OPAQUE) or not all(by_default):
            return
        if (node := self.refgraph.node(obj)) is not None:
            self.refgraph.read(node.source, guard.IDENTITY, obj, site)
        else:
            text = f"{HERE} formats {a_type(obj)} as text with its address, which is different on every call."
            hint = "Give the class a `__repr__`, or put one of its attributes into the text."
            self.journal.refuse("MP103", text, hint=hint, site=site)

    def definition(self, obj: Any, site: MaybeSite) -> None:
        """Native code formats a class or function as text, which contains its name."""
        if is_a(obj, type) and kinds.is_heap_type(obj):
            for name in _CLASS_NAMES:
                self.context.classes.read_field(obj, name, site)
            self.context.classes.read_attr(obj, "__module__", site)
        elif is_a(obj, types.FunctionType):
            self.context.functions.read_attr(obj, "__qualname__", site)

    def fields_in_text(self, obj: Any, site: MaybeSite) -> None:
        """Guard what the text of ``obj`` contains besides its contents: fields, a dict's default factory, names."""
        if is_a(obj, BaseException):
            native = [k for k in type(obj).__mro__ if not kinds.is_heap_type(k) and k not in BaseException.__mro__]
            for name in {n for k in native for n, raw in vars(k).items() if is_a(raw, types.MemberDescriptorType)}:
                self.context.reads.attr(obj, name, site)
        elif is_a(obj, collections.defaultdict):
            self.context.reads.attr(obj, "default_factory", site)
        elif is_a(obj, types.ModuleType):
            for name in ("__spec__", "__name__", "__file__"):
                self.context.globals.read_module(obj, name, site)
        elif type(obj) is types.CellType or type(obj).__module__ == "_thread":
            self.journal.refuse("MP103", f"{HERE} formats {a_type(obj)} as text that contains an address.", site=site)

    def names_in_error(self, error: BaseException) -> None:
        """Guard names of classes and functions in the text of an exception from native code."""
        text = " ".join(a for a in BaseException.args.__get__(error) if type(a) is str)  # type: ignore[attr-defined]
        if not text:
            return
        seen = [node.obj for node in self.refgraph.nodes.values()]
        for obj in seen:
            if is_a(obj, torch.Tensor) and type(obj).__name__ in text:
                self.ledger.ops.inputs.guard(obj)  # the guard includes its type
            elif type(obj) is types.ModuleType and repr(vars(obj).get("__name__")) in text:
                self.context.globals.read_module(obj, "__name__", None)
            elif type(obj) is types.FunctionType and obj.__qualname__ in text:
                self.context.functions.read_attr(obj, "__qualname__", None)
        for cls in {c for obj in seen for c in (type(obj), obj) if is_a(c, type) and kinds.is_heap_type(c)}:
            if type.__getattribute__(cls, "__name__") in text:
                for name in _CLASS_NAMES:
                    self.context.classes.read_field(cls, name, None)
