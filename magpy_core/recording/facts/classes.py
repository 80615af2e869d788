"""Classes: attributes, bases and overrides of classes. Absent names are facts too. Key type: Classes."""

from __future__ import annotations

import functools
import types
from dataclasses import field
from typing import Any

import torch

from magpy_core._compat.cpython.annotations import KEPT_IN, evaluated
from magpy_core._compat.cpython.layout import bound_object
from magpy_core.findings import HERE
from magpy_core.guards import kinds as guard
from magpy_core.knowledge.modules import UNCHANGED_CLASSES, UNCHANGED_METACLASSES
from magpy_core.knowledge.policy import module_of
from magpy_core.monitor.events import MaybeSite
from magpy_core.recording.callees import BUILTIN_FUNCTION
from magpy_core.recording.facts.slot import Slot
from magpy_core.recording.tracker import Tracker
from magpy_core.refgraph import kinds, lookup
from magpy_core.refgraph.kinds import is_a
from magpy_core.refgraph.lookup import class_lookup

_OF_TYPES = frozenset({"__dict__", "__weakref__", "__doc__", "__module__"})
_PLAIN_NAMES = frozenset({"__call__", "__doc__", "__module__", "__name__", "__class__", "__dict__", "__init_subclass__"})
_UNCHANGED_METACLASSES = UNCHANGED_METACLASSES | {"builtins"}
# Attributes of a class that are stored in C, not in its ``__dict__``.
_CLASS_NAMES = frozenset({"__name__", "__qualname__"})
_CLASS_TREE = frozenset({"__bases__", "__mro__", "__base__"})


def _is_compared(cls: type) -> bool:
    """Whether guards compare the names in a class: not for classes of libraries."""
    return kinds.is_heap_type(cls) and not module_of(cls).startswith(UNCHANGED_CLASSES)


def _belongs_elsewhere(raw: Any) -> bool:
    if is_a(raw, BUILTIN_FUNCTION):
        return kinds.kind_of(bound_object(raw)) not in (kinds.IDENTITY, kinds.SCALAR)
    return is_a(raw, (functools.partial, types.MethodType))


def _number_slot(cls: type, name: str) -> Slot:
    """Where a class without a metaclass holds a number: no code of the program runs when it is replaced by a copy."""

    def swap(old: Any, new: Any) -> None:
        if cls.__dict__.get(name) is old:
            type.__setattr__(cls, name, new)

    return Slot(lambda: cls.__dict__.get(name), swap)


class Classes(Tracker):
    """Guards class lookups, special methods and metaclasses."""

    _shapes: set[type] = field(default_factory=set, init=False)
    _special: set[type] = field(default_factory=set, init=False)
    _tensor_classes: set[type] = field(default_factory=set, init=False)
    _metaclasses: set[type] = field(default_factory=set, init=False)
    _types: set[type] = field(default_factory=set, init=False)

    def member(self, tp: type, name: str, site: MaybeSite) -> None:
        """Guard what class lookup of ``name`` finds along the MRO of ``tp`` (law: absence is a fact)."""
        raw, owner = class_lookup(tp, name)
        self.shape(tp, site)
        self.not_overridden(tp, name, owner, site)
        if owner is not None and kinds.is_heap_type(owner):
            source = self.context.roots.attribute(owner, name)
            if kinds.kind_of(raw) == kinds.IDENTITY:
                self.refgraph.read(source, guard.IS, raw, site)
            elif hasattr(type(raw), "__get__"):
                self.context.values.read(source, raw, site)  # a user-defined descriptor: its methods read it
                self.descriptor(raw, site)
            elif name not in _OF_TYPES:  # an instance attribute takes precedence unless this is a data descriptor
                self.refgraph.read(source, guard.TYPE, type(raw), site)
            self.context.functions.guard(raw)

    def class_value(self, owner: type | None, name: str, raw: Any, site: MaybeSite) -> None:
        """Guard a class attribute that was read: methods by identity, data by value. Built-in classes do not change."""
        if owner is None or not kinds.is_heap_type(owner):
            return
        if (id(owner), name) in self.refgraph.class_writes:
            return  # what the region has set
        slot = _number_slot(owner, name) if type(raw) in kinds.NUMBER_TYPES and type(owner) is type else None
        self.context.values.read(self.context.roots.attribute(owner, name), raw, site, slot)
        self.context.functions.guard(raw)
        self.descriptor(raw, site)

    def descriptor(self, raw: Any, site: MaybeSite) -> None:
        """Guard the methods of a user-defined descriptor's class."""
        tp = type(raw)
        if kinds.is_heap_type(tp) and kinds.kind_of(raw) == kinds.OBJECT:
            self.shape(tp, site)  # its class may get descriptor methods
            for name in ("__get__", "__set__", "__delete__"):
                if not lookup.missing(lookup.class_lookup(tp, name)[0]):
                    self.member(tp, name, site)

    def guard_shadowed_class_attr(self, tp: type, name: str, site: MaybeSite) -> None:
        """Guard the class attribute that an instance attribute shadows: it must not become a data descriptor."""
        raw, owner = lookup.class_lookup(tp, name)
        if owner is not None and _is_compared(owner):
            self.refgraph.read(self.context.roots.attribute(owner, name), guard.TYPE, type(raw), site)
            self.descriptor(raw, site)

    def identity_read(self, obj: Any, site: MaybeSite) -> None:
        """A value guarded by identity was read. For a class, guard the methods of a user-defined metaclass; for a bound
        method of a container, read the container."""
        if not is_a(obj, type):
            owner = bound_object(obj)
            if kinds.kind_of(owner) not in (kinds.IDENTITY, kinds.SCALAR):
                self.context.values.read(self.sources.const(owner, obj.__name__), owner, site)
            return
        meta: Any = type(obj)
        if meta in self._metaclasses or module_of(meta).partition(".")[0] in _UNCHANGED_METACLASSES:
            return
        self._metaclasses.add(meta)
        self.shape(meta, site)
        for k in meta.__mro__:
            if kinds.is_heap_type(k) and module_of(k).partition(".")[0] not in UNCHANGED_METACLASSES:
                for name, raw in list(k.__dict__.items()):
                    if kinds.kind_of(raw) == kinds.IDENTITY:
                        self.refgraph.read(self.context.roots.attribute(k, name), guard.IS, raw, site)
                        self.context.functions.guard(raw)

    def not_overridden(self, tp: type, name: str, owner: type | None, site: MaybeSite) -> None:
        """Guard that library classes, whose names are not compared, don't override this inherited attribute."""
        for k in tp.__mro__[: tp.__mro__.index(owner)] if owner is not None else ():
            if kinds.is_heap_type(k) and module_of(k).startswith(UNCHANGED_CLASSES):
                self.context.roots.guard_absent(self.context.roots.const_root(k).source, name, site)

    def read_attr(self, cls: type, name: str, site: MaybeSite) -> None:
        raw, owner = lookup.class_lookup(cls, name)
        above, above_owner = lookup.class_lookup(type(cls), name)
        if above_owner is type and kinds.is_heap_type(cls):
            if name == "__annotations__" and KEPT_IN:
                self._annotations(cls, site)
            self.read_field(cls, name, site)
        elif above_owner is not None and kinds.is_heap_type(above_owner):
            self.member(type(cls), name, site)
            if owner is None:
                self.class_value(above_owner, name, above, site)
        self.shape(cls, site)
        if owner is None:
            if lookup.class_lookup(type(cls), "__getattr__")[1] is not None:
                self.member(type(cls), "__getattr__", site)
        elif name not in ("__dict__", "__weakref__"):
            self.class_value(owner, name, raw, site)

    def annotations_have_values(self, holder: Any, site: MaybeSite) -> bool:
        """Whether the annotations of a class or function from outside can be evaluated (3.14); they are. Refuses if not."""
        try:
            evaluated(holder)
        except Exception:
            text = f"{HERE} reads annotations that can't be evaluated: what they are depends on names that no guard checks."
            self.journal.refuse("MP111", text, hint="Read them outside the region.", site=site)
            return False
        return True

    def _annotations(self, cls: type, site: MaybeSite) -> None:
        """3.14: what the class keeps under other names, once it has evaluated them."""
        self.context.age._new_objects = None
        if not self.context.age.is_made_inside(cls) and self.annotations_have_values(cls, site):
            for name in KEPT_IN:
                if name in cls.__dict__:
                    self.class_value(cls, name, cls.__dict__[name], site)

    def read_field(self, cls: type, name: str, site: MaybeSite) -> None:
        """Guard an attribute of ``type``: names by value, tuples of bases by identity, the namespace entry by entry."""
        source = self.context.roots.const_root(cls).source
        if name in _CLASS_NAMES:
            self.refgraph.read(self.sources.make("field", source, name), guard.EQUAL, type.__getattribute__(cls, name), site)
        elif name in _CLASS_TREE:
            self.refgraph.read(self.sources.make("field", source, name), guard.IS, type.__getattribute__(cls, name), site)
        elif name == "__dict__":
            self.shape(cls, site)
            for key, raw in list(cls.__dict__.items()):
                if key not in ("__dict__", "__weakref__"):
                    self.class_value(cls, key, raw, site)

    def class_used(self, tp: type, site: MaybeSite) -> None:
        """An object of this class is used. Refuse a special method that is bound to another object (``__len__ =
        entries.__len__``): the interpreter calls it without an event."""
        if tp in self._types:
            return
        self._types.add(tp)
        for k in tp.__mro__:
            for name, raw in list(k.__dict__.items()) if _is_compared(k) else ():
                if name[:2] == "__" and name not in _PLAIN_NAMES and _belongs_elsewhere(raw):
                    text = f"`{name}` of the class `{k.__name__}` is bound to another object: guards can't check that."
                    hint = "Define a method that calls the other object's method."
                    self.journal.refuse("MP111", text, hint=hint, site=site)

    def shape(self, tp: type, site: MaybeSite) -> None:
        """Guard that ``tp`` has the same bases, with the same names in them (a new descriptor could shadow an instance)."""
        if tp in self._shapes:
            return
        self._shapes.add(tp)
        self.class_used(tp, site)
        if _is_compared(tp):
            self.read_field(tp, "__mro__", site)
        for k in filter(_is_compared, tp.__mro__):
            self._names(k, site)

    def tensor_class(self, tp: type, site: MaybeSite) -> None:
        """Guard the names in a subclass of ``torch.Tensor``: a new one would override torch's (a method, ``shape``)."""
        if tp in self._tensor_classes:
            return
        self._tensor_classes.add(tp)
        for k in tp.__mro__[: tp.__mro__.index(torch.Tensor)]:
            self._names(k, site)
        if _is_compared(tp):
            self.read_field(tp, "__mro__", site)

    def _names(self, cls: type, site: MaybeSite) -> None:
        table = self.sources.make("dict", self.context.roots.const_root(cls).source, None)
        self.refgraph.read(table, guard.NAMES, frozenset(cls.__dict__), site)

    def special_methods(self, obj: Any, site: MaybeSite) -> None:
        """Guard all special methods of the object's class: any of them may run."""
        tp = type(obj)
        if tp is types.MethodType and (node := self.refgraph.node(obj)) is not None:
            # bound methods are equal if they have the same object
            self.refgraph.read(self.sources.make("field", node.source, "__self__"), guard.IS, obj.__self__, site)
        self.shape(tp, site)
        if tp in self._special:
            return
        self._special.add(tp)
        for k in tp.__mro__:
            if kinds.is_heap_type(k) and not module_of(k).startswith("torch."):
                for name, value in list(k.__dict__.items()):
                    if name.startswith("__") and type(value) is types.FunctionType:
                        self.refgraph.read(self.context.roots.attribute(k, name), guard.IS, value, site)
                        self.context.functions.guard(value)

    def operands(self, site: MaybeSite, *values: Any) -> None:
        """Guard special methods of operands of a tensor and arguments of torch: such a method may handle the operation."""
        for value in values:
            if kinds.kind_of(value) == kinds.OBJECT and not module_of(type(value)).startswith("torch"):
                self.special_methods(value, site)
