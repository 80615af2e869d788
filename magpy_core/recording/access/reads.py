"""Reads: attributes and closure cells that the program reads become guards. Key type: Reads."""

from __future__ import annotations

import collections
import enum
import functools
import gc
import threading
import types
import weakref
from dataclasses import field
from typing import Any

import torch
from torch import nn

from magpy_core._compat.torch.tensor_guards import no_torch_function
from magpy_core.findings import HERE, NO_ACTION
from magpy_core.guards import kinds as guard
from magpy_core.knowledge.callables import LRU_CACHE
from magpy_core.knowledge.objects import ARRAY_POINTERS, FIXED_FIELDS
from magpy_core.monitor.events import MaybeSite, Site
from magpy_core.recording.callees import DESCRIPTOR, GETTERS
from magpy_core.recording.facts.slot import Slot
from magpy_core.recording.libraries import TORCH_FOLDER
from magpy_core.recording.tracker import Tracker
from magpy_core.recording.wording import a_type
from magpy_core.refgraph import kinds, lookup
from magpy_core.refgraph.arrays import is_array
from magpy_core.refgraph.fields import ABSENT, cell_value, custom_dict, instance_dict, slot_value, swap_entry
from magpy_core.refgraph.kinds import is_a
from magpy_core.refgraph.node import Node
from magpy_core.refgraph.stand_in import StandIn

WRAPPERS = (property, functools.cached_property, staticmethod, classmethod, LRU_CACHE)
"""Objects that wrap functions; a program may set attributes on them, or another ``__doc__``."""
_STORAGES = (torch.UntypedStorage, torch.TypedStorage)
_OBSERVED = (types.FunctionType, *GETTERS)  # getters whose reads are observed
_TUPLE_FIELD = type(collections.namedtuple("_OfOne", "field").field)  # type: ignore[attr-defined]
_PASS_IT_IN = "Read it outside the region, and pass the value in."


class Reads(Tracker):
    """Handlers of attribute and cell reads."""

    _made_inside: dict[int, tuple[weakref.ref[Any], bool]] = field(default_factory=dict, init=False)
    """What is known of functions and classes, by id."""

    def raw_attr(self, obj: Any, name: str, site: MaybeSite) -> None:
        """``object.__getattribute__(obj, name)``: the default lookup, without Python overrides."""
        if is_a(obj, (torch.Tensor, type)):
            self.attr(obj, name, site)
            return
        node = self.context.roots.node_for(obj)
        found = lookup.resolve(obj, name, plain=True)
        self.context.classes.member(type(obj), name, site)
        if node is None:
            self.read_internal_attr(obj, name, found, site)
        elif found.where != "absent":
            self.external_attr(node, obj, name, found, site)
        else:  # the default lookup does not search a module's tables
            self.absent_attr(node, obj, name, site)

    def cell_read(self, site: MaybeSite, cell: Any) -> None:
        node = self.refgraph.node(cell)
        if node is None:
            if not self._is_of_torch(site, cell):
                self.context.age.assume_internal(cell)  # cells from outside come with their function
            return
        self.journal.site = site
        value = cell_value(cell)
        if value is ABSENT:
            if node.snapshot is None:
                self.journal.skip_call("an outside variable had no value")
            return
        if node.snapshot is not None and node.snapshot.content is not value:
            return

        def swap_cell(old: Any, new: Any) -> None:
            if node.snapshot is not None and node.snapshot.content is old:
                node.snapshot.content = new
            if cell_value(cell) is old:
                cell.cell_contents = new

        slot = Slot(lambda: cell_value(cell), swap_cell)
        self.context.values.read(self.sources.make("cell", node.source, None), value, site, slot)

    def _is_of_torch(self, site: MaybeSite, cell: Any) -> bool:
        """Whether it is the cell of one of torch's decorators with the decorated function, or of one of its methods with the
        class for ``super()`` (read in Python 3.12 and later); neither changes, and the function is guarded. A library
        (`torch._disable_dynamo`, `nn.init`) or MagPy (`Optimizer.step`) may call such code without an event."""
        if site is None or not site.code.co_filename.startswith(TORCH_FOLDER):
            return False
        value = cell_value(cell)
        decorated = type(value) is types.FunctionType and value.__code__.co_filename.startswith(TORCH_FOLDER)
        if not decorated and not (site.name == "__class__" and is_a(value, type)):
            return False
        if self._is_made_inside(value):
            return False
        if decorated:
            self.context.functions.guard(value)
        return True

    def _is_made_inside(self, value: Any) -> bool:
        """Whether the region has created a function or a class. Searched for once: a long recording makes many objects."""
        reference, is_made = self._made_inside.get(id(value), (None, False))
        if reference is None or reference() is not value:
            is_made = any(value is made for made in gc.get_objects(0))
            self._made_inside[id(value)] = weakref.ref(value), is_made
        return is_made

    def attr_read(self, site: Site, obj: Any) -> None:
        self.journal.site = site
        if not (is_array(obj) and self.context.host_calls.shows(site, obj)):
            self.attr(obj, site.name, site)

    def thread_local(self, site: MaybeSite) -> None:
        text = f"{HERE} uses a `threading.local`, which has different attributes in each thread."
        self.journal.refuse("MP111", text, hint=_PASS_IT_IN, site=site)

    def read_super(self, cls: type, obj: Any, name: str, site: MaybeSite) -> None:
        tp = obj if is_a(obj, type) else type(obj)
        mro = tp.__mro__
        after = mro[mro.index(cls) + 1 :] if cls in mro else ()
        self.context.classes.shape(tp, site)
        owner = next((k for k in after if name in k.__dict__), None)
        if owner is not None:
            self.context.classes.class_value(owner, name, owner.__dict__[name], site)

    def attr(self, obj: Any, name: str, site: MaybeSite) -> None:
        """``obj.name`` is about to be read."""
        if is_a(obj, StandIn):
            obj = self.context.values.behind(obj, site)
        tp = type(obj)
        if self.context.array_values.shows(obj, name, site):
            return
        if tp.__module__ == "numpy" and kinds.holds_memory(tp) and self.context.arrays.memory_read(site, obj):
            return
        if tp in weakref.ProxyTypes or is_a(obj, torch.futures.Future):
            text = f"{HERE} reads {a_type(obj)}, whose state other code can change."
            hint = "Pass in the object that it refers to." if tp in weakref.ProxyTypes else "Wait for it outside the region."
            self.journal.refuse("MP111", text, hint=hint, site=site)
        elif issubclass(tp, threading.local):
            self.thread_local(site)
        if (name in ARRAY_POINTERS and kinds.holds_memory(tp)) or tp in _STORAGES:
            text = f"{HERE} exposes an array's memory to Python, where the graph can't follow."
            self.journal.refuse("MP102", text, site=site)
        kind = kinds.kind_of_type(tp)
        if kind == kinds.TENSOR:
            self.read_tensor_attr(obj, name, site)
        elif is_a(obj, types.ModuleType):
            if tp is not types.ModuleType and hasattr(type(lookup.class_lookup(tp, name)[0]), "__set__"):
                self.context.classes.member(
                    tp, name, site
                )  # a setting that looks like a global: torch.backends.cudnn.enabled
            else:
                self.context.globals.read_module(obj, name, site)
        elif is_a(obj, type):
            self.context.classes.read_attr(obj, name, site)
        elif tp is types.FunctionType:
            self.context.functions.read_attr(obj, name, site)
        elif tp in WRAPPERS:
            self.context.functions.read_wrapper_attr(obj, name, site)
        elif tp is super:
            self.read_super(obj.__thisclass__, obj.__self__, name, site)
        elif is_a(obj, torch.jit.ScriptModule):
            self.journal.refuse_compiled_code(f"`{obj.original_name}`, a torch.jit module,")
        elif is_a(obj, enum.Enum) or kind not in (kinds.SCALAR, kinds.IDENTITY):
            self._object_attr(obj, name, site)

    def _object_attr(self, obj: Any, name: str, site: MaybeSite) -> None:
        tp = type(obj)
        node = self.context.roots.node_for(obj)
        found = lookup.resolve(obj, name)
        if found.where == "override":
            self.context.classes.member(tp, "__getattribute__", site)
            self.context.classes.member(tp, "__getattr__", site)  # called if `__getattribute__` raises
            return  # reads of the Python methods are observed
        if found.in_class or found.where in ("python", "absent"):
            self.context.classes.member(tp, name, site)
        if found.where == "data" and is_a(found.value, property) and is_a(found.value.fget, GETTERS):  # it has no frame
            self.context.natives.call_getter(site, found.value.fget, (obj,))
        elif found.where == "absent" and kinds.is_heap_type(tp):
            self.context.classes.read_field(tp, "__name__", site)  # the text of the AttributeError contains it
        elif found.where == "python":
            self.context.classes.member(tp, "__getattr__", site)
        if node is None:
            self.read_internal_attr(obj, name, found, site)
        else:
            self.external_attr(node, obj, name, found, site)

    def read_internal_attr(self, obj: Any, name: str, found: lookup.Found, site: MaybeSite) -> None:
        """Read an attribute of an internal object: only values in its class come from outside."""
        if is_a(obj, BaseException):
            self.context.texts.names_in_error(obj)
        if found.where == "class":
            self.context.classes.class_value(found.owner, name, found.value, site)

    def external_attr(self, node: Node, obj: Any, name: str, found: lookup.Found, site: MaybeSite) -> None:
        where = found.where
        if where in ("instance", "slot") and node.snapshot is not None and node.snapshot.attr(name) is not found.value:
            return
        if where == "instance":
            self.context.classes.shape(type(obj), site)
            self.context.classes.guard_shadowed_class_attr(type(obj), name, site)
            slot = self.context.values.attr_slot(node, name)
            self.context.values.read(self.sources.attr(node.source, name), found.value, site, slot)
        elif where == "custom":
            self.context.classes.shape(type(obj), site)
            self.custom_dict_attr(node, obj, name, site)
        elif where == "module":
            self.absent_attr(node, obj, name, site)
            self.absent_members(node, obj, lookup.MODULE_TABLES[: lookup.MODULE_TABLES.index(found.table)], name, site)
            members = self.refgraph.node((instance_dict(obj) or {})[found.table])
            if members is None or members.snapshot is None or members.snapshot.entry(name) is found.value:
                source = self.sources.item(self.sources.attr(node.source, found.table), name)
                self.context.values.read(source, found.value, site)
        elif where == "slot" and found.value is ABSENT:
            self.context.values.read(self.sources.make("filled", node.source, name), False, site)
        elif where == "slot":

            def swap_slot(old: Any, new: Any) -> None:
                if node.snapshot is not None and node.snapshot.slots is not None:
                    swap_entry(node.snapshot.slots, name, old, new)
                if slot_value(obj, name) is old:
                    lookup.class_lookup(type(obj), name)[0].__set__(obj, new)

            slot = Slot(lambda: slot_value(obj, name), swap_slot)
            self.context.values.read(self.sources.make("slot", node.source, name), found.value, site, slot)
        elif where == "class":
            self.absent_attr(node, obj, name, site)
            self.context.classes.class_value(found.owner, name, found.value, site)
        elif where == "getset":
            self.getset(node, obj, name, site)
        elif where == "data":
            self.data_descriptor(node, found.value, name, site)
        elif where in ("absent", "python"):
            self.absent_attr(node, obj, name, site)
            if where == "python":
                self.native_getattr(obj, found.value, name, site)
            elif is_a(obj, nn.Module):
                self.absent_members(node, obj, lookup.MODULE_TABLES, name, site)

    def module_member(self, module: Any, name: str, site: MaybeSite) -> None:
        """``nn.Module.__getattr__``, called by the program's own ``__getattr__`` or ``__getattribute__``."""
        node = self.refgraph.node(module)
        if node is not None:
            self.external_attr(node, module, name, lookup.member(module, name), site)

    def data_descriptor(self, node: Node, raw: Any, name: str, site: MaybeSite) -> None:
        """A data descriptor returns the attribute; the reads of one written in C can't be observed."""
        if type(raw) is _TUPLE_FIELD:
            self.context.items.sequence_item(node, raw.__reduce__()[1][0], site)
        elif kinds.is_heap_type(type(raw)) or (type(raw) is property and is_a(raw.fget, _OBSERVED)):
            return
        elif kinds.is_device_properties(type(node.obj)):
            return  # the object determines it
        elif type(raw) is not property or raw.fget is not None:
            text = f"{HERE} reads `.{name}`, a property implemented in C: guards can't check it."
            self.journal.refuse("MP111", text, hint=_PASS_IT_IN, site=site)

    def native_getattr(self, obj: Any, getter: Any, name: str, site: MaybeSite) -> None:
        """``__getattr__ = dict.__getitem__`` and similar: reads of native code have no events."""
        if is_a(getter, DESCRIPTOR):
            self.context.callbacks.called(site, getter, [(obj, name)], ())
        elif not is_a(getter, (*_OBSERVED, staticmethod, classmethod)):
            text = f"{HERE} looks up `{name}` through {a_type(getter)}: guards can't check that."
            self.journal.refuse("MP111", text, hint="Write `__getattr__` as a Python method.", site=site)

    def custom_dict_attr(self, node: Node, obj: Any, name: str, site: MaybeSite) -> None:
        """Guard an attribute, or its absence, of an object whose ``__dict__`` is a subclass of dict: the object itself."""
        if custom_dict(obj) is not obj:
            self._refuse_custom_dict(obj, site)
        elif dict.__contains__(node.obj, name):
            self.context.items.dict_item(node, name, site)
        elif node.snapshot is None or all(key != name for key, _ in node.snapshot.content):
            self.refgraph.read(self.context.contents.item_source(node, name), guard.ABSENT, None, site)

    def _refuse_custom_dict(self, obj: Any, site: MaybeSite) -> None:
        """Refuse it: two objects share one state, and the dict may create entries when a guard reads it."""
        text = f"{HERE} uses attributes of {a_type(obj)}, whose `__dict__` is not a plain dict: guards can't check them."
        self.journal.refuse("MP111", text, hint="Update the existing `__dict__` instead of replacing it.", site=site)

    def absent_attr(self, node: Node, obj: Any, name: str, site: MaybeSite) -> None:
        """Guard that the instance itself has no attribute ``name`` (unless the region removed it)."""
        if custom_dict(obj) is not None:
            self.custom_dict_attr(node, obj, name, site)
        elif node.snapshot is not None and node.snapshot.attr(name) is not ABSENT:
            return
        elif instance_dict(obj) is not None and name != "__class__":
            self.context.roots.guard_absent(node.source, name, site)

    def absent_members(self, node: Node, module: Any, tables: tuple[str, ...], name: str, site: MaybeSite) -> None:
        """Guard that these tables of a module have no ``name`` (unless the region removed it)."""
        for table in tables:
            held = self.refgraph.node((instance_dict(module) or {}).get(table))
            if held is None or held.snapshot is None or held.snapshot.entry(name) is ABSENT:
                source = self.sources.item(self.sources.attr(node.source, table), name)
                self.refgraph.read(source, guard.ABSENT, None, site)

    def getset(self, node: Node, obj: Any, name: str, site: MaybeSite) -> None:
        """An attribute implemented in C: of a built-in object (bound method, partial, slice, range, exception)."""
        if name == "__dict__":
            d = instance_dict(obj)
            if d is None and (custom := custom_dict(obj)) is not None:
                if custom is not obj:
                    self._refuse_custom_dict(obj, site)
                self.context.values.read(self.sources.make("dict", node.source, None), custom, site)
            elif d is not None and self.refgraph.node(d) is None:
                snapshot = self.refgraph.snapshot(node)
                dict_node = self.refgraph.add(d, self.sources.make("dict", node.source, None))
                # two nodes for the same state: the dict's content at entry is the object's attributes at entry
                self.refgraph.snapshot(dict_node).content = list((snapshot.attrs or {}).items())
        elif name not in FIXED_FIELDS:
            try:
                value = object.__getattribute__(obj, name)
            except AttributeError:
                return
            if kinds.kind_of(value) == kinds.OPAQUE:
                text = f"{HERE} reads `.{name}` of {a_type(obj)}: guards can't check it."
                self.journal.refuse("MP111", text, hint=_PASS_IT_IN, site=site)
            else:
                self.context.values.read(self.sources.make("field", node.source, name), value, site)

    def read_tensor_attr(self, obj: torch.Tensor, name: str, site: MaybeSite) -> None:
        """Read a Python attribute of a tensor; the operator recorder handles everything else."""
        with no_torch_function():
            d, hidden = obj.__dict__, name == "data" and obj.requires_grad
        if hidden and not (place := self.journal.places.now(site, self.journal.site)).deeper:
            text = "has no autograd history: autograd can't detect a write to it, and gradients may be wrong."
            hint = "`.detach()` has the same values and memory, and such a write raises."
            if obj.is_leaf:
                hint = "Use the tensor itself under `torch.no_grad()`, without `.data`: autograd detects a write to that."
                if self.ledger.ops.graph.find_nodes(op="call_function", target=torch.autograd.grad, sort=False):
                    hint = f"{NO_ACTION} after the backward pass. {hint}"
            self.journal.note("MP308", f"{self.journal.quoted_expression(site) or 'This'} {text}", hint=hint, place=place)
        node = self.refgraph.node(obj)
        if lookup.is_data_descriptor(lookup.class_lookup(type(obj), name)[0]):
            if name == "__dict__" and node is not None:
                self.getset(node, obj, name, site)
        elif name in d:
            if node is not None:
                self.context.values.read(self.sources.attr(node.source, name), d[name], site, None)
            elif obj not in self.ledger.ops.values:
                text = f"{HERE} reads `.{name}` of a tensor that the monitor can't trace to a source."
                self.journal.refuse("MP111", text, hint=_PASS_IT_IN, site=site)
        elif node is not None:  # an instance attribute would shadow a method of the class
            self.context.roots.guard_absent(node.source, name, site)
