"""ReadEvents: reads of globals, cells, attributes and items become guarded edges."""

from __future__ import annotations

import builtins
import collections
import enum
import threading
import types
import weakref
from collections.abc import Iterable
from typing import Any

import torch
from torch import nn

from magpy_core._compat.torch.tensor_guards import no_torch_function
from magpy_core.findings import HERE
from magpy_core.guards import kinds as guard
from magpy_core.monitor.positions import current_globals
from magpy_core.recording.base import Slot
from magpy_core.recording.callees import DESCRIPTOR, GETTERS
from magpy_core.recording.definitions import WRAPPERS, DefinitionEvents
from magpy_core.recording.wording import a_type
from magpy_core.refgraph import hashing, kinds, lookup, natives
from magpy_core.refgraph.fields import ABSENT, cell_value, instance_dict, odd_dict, slot_value
from magpy_core.refgraph.graph import Node
from magpy_core.refgraph.kinds import is_a

_BUILTINS = vars(builtins)
# C-level attributes of built-in objects that are fixed once the object's identity is.
_FIXED_FIELDS = frozenset(
    {"__name__", "__qualname__", "__module__", "__doc__", "__class__", "__objclass__", "__mro__", "__bases__"}
)


_STORAGES = (torch.UntypedStorage, torch.TypedStorage)
_SEEN = (types.FunctionType, *GETTERS)  # getters whose reads are seen
_TUPLE_FIELD = type(collections.namedtuple("_OfOne", "field").field)  # type: ignore[attr-defined]
_POINTERS = frozenset({"ctypes", "__array_interface__", "__array_struct__"})  # of NumPy arrays


class ReadEvents(DefinitionEvents):
    """Observer methods for reads."""

    # -- globals and cells -------------------------------------------------------------------------------------

    def global_read(self, site: Any) -> None:
        if site in self._global_sites:
            return
        self._global_sites.add(site)
        self.site = site
        self.global_value(self.globals_of(site.code), site.name, site)

    _global_sites: set[Any]

    def globals_of(self, code: types.CodeType) -> dict[str, Any]:
        """The globals the running frame of ``code`` sees; one code object must not run with two (refused where seen)."""
        g = self.code_globals.get(code)
        if g is None:
            g = self.code_globals[code] = current_globals()
        return g

    def global_value(self, g: dict[str, Any], name: str, site: Any) -> None:
        root = self.globals_root(g)
        entry = root.snapshot.content if root.snapshot is not None else None
        if entry is not None and any(k == name and v is not g.get(name, ABSENT) for k, v in entry):
            self._global_sites.discard(site)
            return  # already rewritten by the region
        source = self.sources.item(root.source, name)
        if name in g:
            if entry is not None and all(k != name for k, _ in entry):
                return  # made by the region

            def set_global(v: Any) -> None:
                if root.snapshot is not None:
                    old = g.get(name)
                    root.snapshot.content = [(k, v if k == name and e is old else e) for k, e in root.snapshot.content]
                g[name] = v

            self.value(source, g[name], site, Slot(lambda: g.get(name), set_global))
        elif name in _BUILTINS:
            self.refgraph.read(source, guard.ABSENT, None, site)
            b = self.refgraph.node(_BUILTINS) or self.refgraph.add(_BUILTINS, self.sources.const(_BUILTINS, "builtins"))
            self.value(self.sources.item(b.source, name), _BUILTINS[name], site)
        else:
            self.refgraph.read(source, guard.ABSENT, None, site)

    def cell_read(self, site: Any, cell: Any) -> None:
        node = self.refgraph.node(cell)
        if node is None:
            self.assume_internal(cell)  # cells from outside come with their function
            return
        self.site = site
        value = cell_value(cell)
        if value is ABSENT:
            if node.snapshot is None:
                self.refuse_once("a variable from outside had no value")
            return
        if node.snapshot is not None and node.snapshot.content is not value:
            return

        def set_cell(v: Any) -> None:
            if node.snapshot is not None and node.snapshot.content is cell_value(cell):
                node.snapshot.content = v
            cell.cell_contents = v

        self.value(self.sources.make("cell", node.source, None), value, site, Slot(lambda: cell_value(cell), set_cell))

    # -- attributes --------------------------------------------------------------------------------------------

    def attr_read(self, site: Any, obj: Any) -> None:
        self.site = site
        self.read_attr(obj, site.name, site)

    def thread_local(self, site: Any) -> None:
        self.refuse("MP111", "A `threading.local` has other attributes in every thread.", site=site)

    def super_attr_read(self, site: Any, cls: Any, obj: Any) -> None:
        self.site = site
        self.read_super(cls, obj, site.name, site)

    def read_super(self, cls: type, obj: Any, name: str, site: Any) -> None:
        tp = obj if is_a(obj, type) else type(obj)
        mro = tp.__mro__
        after = mro[mro.index(cls) + 1 :] if cls in mro else ()
        self.class_shape(tp, site)
        for k in after:
            if name in k.__dict__:
                if k.__flags__ & (1 << 9):
                    raw = k.__dict__[name]
                    source = self.sources.attr(self.const_root(k).source, name)
                    self.class_value(source, raw, site)
                return

    def read_attr(self, obj: Any, name: str, site: Any) -> None:
        """``obj.name`` is about to be read."""
        tp = type(obj)
        if kinds.holds_memory(tp) and self.data_attribute(site, obj, name):
            return
        if tp in weakref.ProxyTypes or is_a(obj, torch.futures.Future):
            self.refuse("MP111", f"{HERE} reads {a_type(obj)}, which stands for what other code may change.", site=site)
        elif issubclass(tp, threading.local):
            self.thread_local(site)
        if (name in _POINTERS and kinds.holds_memory(tp)) or tp in _STORAGES:
            self.refuse("MP102", f"{HERE} gives an array's memory to Python, where the graph can't follow.", site=site)
        if is_a(obj, torch.Tensor):
            self.read_tensor_attr(obj, name, site)
            return
        if tp is types.ModuleType or is_a(obj, types.ModuleType):
            raw = None if tp is types.ModuleType else lookup.class_lookup(tp, name)[0]
            if hasattr(type(raw), "__set__"):  # a setting that looks like a global: torch.backends.cudnn.enabled
                self.class_fact(tp, name, site)
                return
            self.read_module_global(obj, name, site)
            return
        if is_a(obj, type):
            self.read_class_attr(obj, name, site)
            return
        kind = kinds.kind_of_type(tp)
        if kind == kinds.SCALAR:
            return
        if kind == kinds.IDENTITY and not is_a(obj, enum.Enum):
            if is_a(obj, types.FunctionType):
                self.read_function_attr(obj, name, site)
            elif type(obj) in WRAPPERS:
                self.read_wrapper_attr(obj, name, site)
            return
        if tp is super:
            self.read_super(obj.__thisclass__, obj.__self__, name, site)
            return
        if is_a(obj, torch.jit.ScriptModule) and self.script_attr(site, obj, name):
            return
        node = self.node_for(obj)
        found = lookup.resolve(obj, name)
        if found.where == "override":
            self.class_fact(tp, "__getattribute__", site)
            self.class_fact(tp, "__getattr__", site)  # what Python asks when that one raises
            return  # their own reads are seen
        if found.in_class or found.where in ("python", "absent"):
            self.class_fact(tp, name, site)
        if found.where == "data":
            self.descriptor_read(obj, name, found, site)
        if found.where == "absent" and tp.__flags__ & (1 << 9):
            self.read_class_field(tp, "__name__", site)  # what is raised has it in its text
        if found.where == "python":
            self.class_fact(tp, "__getattr__", site)
        if node is None:
            self.read_internal_attr(obj, name, found, site)
            return
        self.external_attr(node, obj, name, found, site)

    def script_attr(self, site: Any, module: Any, name: str) -> bool:
        raise NotImplementedError

    def descriptor_read(self, obj: Any, name: str, found: lookup.Found, site: Any) -> None:
        raise NotImplementedError

    def read_internal_attr(self, obj: Any, name: str, found: lookup.Found, site: Any) -> None:
        """An internal object: only what its class holds comes from outside."""
        if is_a(obj, BaseException):
            self.names_in_error(obj)
        if found.where == "class" and found.owner is not None and found.owner.__flags__ & (1 << 9):
            self.class_value(self.sources.attr(self.const_root(found.owner).source, name), found.value, site)
        elif found.where == "getset" and name == "__self__":
            return

    def external_attr(self, node: Node, obj: Any, name: str, found: lookup.Found, site: Any) -> None:
        where = found.where
        entry = node.snapshot.attr(name) if node.snapshot is not None else None
        if where == "instance":
            if node.snapshot is not None and entry is not found.value:
                return
            self.class_shape(type(obj), site)
            self.passed_over(type(obj), name, site)
            self.value(self.sources.attr(node.source, name), found.value, site, self.attr_store(obj, name, node))
        elif where == "odd":
            self.class_shape(type(obj), site)
            self.odd_attr(node, obj, name, site)
        elif where == "module":
            table = instance_dict(obj)[found.table]  # type: ignore[index]
            self.absent_attr(node, obj, name, site)
            for earlier in ("_parameters", "_buffers", "_modules"):
                members = instance_dict(obj)[earlier]  # type: ignore[index]
                source = self.sources.attr(node.source, earlier)
                if earlier == found.table:
                    table_node = self.refgraph.node(members)
                    if table_node is not None and table_node.snapshot is not None:
                        before = dict(table_node.snapshot.content)
                        if before.get(name, ABSENT) is not table[name]:
                            return
                    self.value(self.sources.item(source, name), found.value, site)
                    return
                self.absent_member(node, obj, earlier, name, site)
        elif where == "slot":
            if node.snapshot is not None and entry is not found.value:
                return
            if found.value is ABSENT:
                self.value(self.sources.make("filled", node.source, name), False, site)
            else:
                source = self.sources.make("slot", node.source, name)

                def set_slot(v: Any) -> None:
                    if node.snapshot is not None and node.snapshot.slots is not None:
                        if node.snapshot.slots.get(name) is slot_value(obj, name):
                            node.snapshot.slots[name] = v
                    lookup.class_lookup(type(obj), name)[0].__set__(obj, v)

                self.value(source, found.value, site, Slot(lambda: slot_value(obj, name), set_slot))
        elif where == "class":
            self.absent_attr(node, obj, name, site)
            if found.owner is not None and found.owner.__flags__ & (1 << 9):
                self.class_value(self.sources.attr(self.const_root(found.owner).source, name), found.value, site)
        elif where == "getset":
            self.getset(node, obj, name, site)
        elif where == "data":
            self.data_descriptor(node, found.value, name, site)
        elif where in ("absent", "python"):
            self.absent_attr(node, obj, name, site)
            if where == "python":
                self.native_getattr(obj, found.value, name, site)
            elif is_a(obj, nn.Module):
                for table in ("_parameters", "_buffers", "_modules"):
                    self.absent_member(node, obj, table, name, site)

    def module_member(self, module: Any, name: str, site: Any) -> None:
        """``nn.Module.__getattr__`` itself, which the program's own ``__getattr__`` or ``__getattribute__`` asks."""
        node = self.refgraph.node(module)
        if node is not None:
            self.external_attr(node, module, name, lookup.member(module, name), site)

    def data_descriptor(self, node: Node, raw: Any, name: str, site: Any) -> None:
        """A descriptor of the object's class gives the attribute; one in C does it unseen."""
        if type(raw) is _TUPLE_FIELD:
            self.read_sequence_item(node, raw.__reduce__()[1][0], site)
        elif type(raw).__flags__ & (1 << 9) or (type(raw) is property and is_a(raw.fget, _SEEN)):
            return  # its reads are seen
        elif type(raw) is not property or raw.fget is not None:
            self.refuse("MP111", f"{HERE} reads `.{name}`, a property in C that no guard can watch.", site=site)

    def native_getattr(self, obj: Any, getter: Any, name: str, site: Any) -> None:
        """``__getattr__ = dict.__getitem__`` and the like: what C reads is shown by no event."""
        if is_a(getter, DESCRIPTOR):
            self.native_callback(site, getter, [(obj, name)], ())
        elif not is_a(getter, (*_SEEN, staticmethod, classmethod)):
            self.refuse("MP111", f"{HERE} asks {a_type(getter)} for `{name}`, which no guard can watch.", site=site)

    def odd_attr(self, node: Node, obj: Any, name: str, site: Any) -> None:
        """An attribute, or that there is none, of an object whose ``__dict__`` is a dict of another class: of itself."""
        if odd_dict(obj) is not obj:
            self._odd(obj, site)
        elif dict.__contains__(node.obj, name):
            self.read_dict_item(node, name, site)
        elif node.snapshot is None or all(key != name for key, _ in node.snapshot.content):
            self.refgraph.read(self.item_source(node, name, "dict_item"), guard.ABSENT, None, site)

    def _odd(self, obj: Any, site: Any) -> None:
        """Two objects hold one state, and the dict may make entries when a guard looks."""
        text = f"{HERE} uses attributes of {a_type(obj)}, whose `__dict__` is no plain dict: no guard can watch them."
        self.refuse("MP111", text, hint="Update the `__dict__` that the object has, with a plain dict.", site=site)

    def absent_attr(self, node: Node, obj: Any, name: str, site: Any) -> None:
        """The instance itself has no attribute ``name`` (unless the region removed it)."""
        if odd_dict(obj) is not None:
            self.odd_attr(node, obj, name, site)
            return
        if node.snapshot is not None and node.snapshot.attr(name) is not ABSENT:
            return
        if instance_dict(obj) is not None and name != "__class__":
            base = self.sources.make("dict", node.source, None)
            self.refgraph.read(self.sources.item(base, name), guard.ABSENT, None, site)

    def absent_member(self, node: Node, module: Any, table: str, name: str, site: Any) -> None:
        """A module's table has no ``name`` (unless the region took it out)."""
        held = self.refgraph.node((instance_dict(module) or {}).get(table))
        if held is None or held.snapshot is None or held.snapshot.entry(name) is ABSENT:
            source = self.sources.item(self.sources.attr(node.source, table), name)
            self.refgraph.read(source, guard.ABSENT, None, site)

    def getset(self, node: Node, obj: Any, name: str, site: Any) -> None:
        """An attribute implemented in C: of a built-in object (bound method, partial, slice, range, exception)."""
        if name == "__dict__":
            d = instance_dict(obj)
            if d is None and (odd := odd_dict(obj)) is not None:
                if odd is not obj:
                    self._odd(obj, site)
                self.value(self.sources.make("dict", node.source, None), odd, site)
            elif d is not None and self.refgraph.node(d) is None:
                snapshot = self.refgraph.snapshot(node)
                dict_node = self.refgraph.add(d, self.sources.make("dict", node.source, None))
                # one state under two handles: the dict's entry content is the object's entry attributes
                self.refgraph.snapshot(dict_node).content = list((snapshot.attrs or {}).items())
            return
        if name in _FIXED_FIELDS:
            return
        try:
            value = object.__getattribute__(obj, name)
        except AttributeError:
            return
        kind = kinds.kind_of(value)
        if kind == kinds.OPAQUE:
            self.refuse("MP111", f"{HERE} reads `.{name}` of {a_type(obj)}, which no guard can watch.", site=site)
            return
        self.value(self.sources.make("field", node.source, name), value, site)

    def read_tensor_attr(self, obj: torch.Tensor, name: str, site: Any) -> None:
        """Python-level attributes hung on a tensor; everything else passes through the operator recorder."""
        with no_torch_function():
            d, hidden = obj.__dict__, name == "data" and obj.requires_grad
        if hidden and not (place := self.places.now(site, self.site)).deeper:
            text = "has no history in autograd, which would not notice a write to it and give wrong gradients."
            hint = "`.detach()` has the same values and memory, and such a write raises."
            self.note("MP308", f"{self.words(site) or 'This'} {text}", hint=hint, place=place)
        node = self.refgraph.node(obj)
        if lookup.is_data_descriptor(lookup.class_lookup(type(obj), name)[0]):
            if name == "__dict__" and node is not None:
                self.getset(node, obj, name, site)
        elif name in d:
            if node is not None:
                self.value(self.sources.attr(node.source, name), d[name], site, None)
            elif id(obj) not in self.ops.values:
                self.refuse("MP111", f"{HERE} reads `.{name}` of a tensor that was reached in an unknown way.", site=site)
        elif node is not None:  # an attribute of its own would come before a method of the class
            own = self.sources.make("dict", node.source, None)
            self.refgraph.read(self.sources.item(own, name), guard.ABSENT, None, site)

    # -- items -------------------------------------------------------------------------------------------------

    def item_read(self, site: Any, obj: Any, key: Any) -> None:
        self.site = site
        self.read_item(obj, key, site)

    def read_item(self, obj: Any, key: Any, site: Any) -> None:
        if is_a(obj, torch.Tensor):
            return
        if self.data_item(site, obj, key):
            return
        if not self.keyed_by_address(obj, key):
            self.escape_all(site, key)
        if self.memory_read(site, obj):
            return
        for part in (key.start, key.stop, key.step) if type(key) is slice else (key,):
            if kinds.kind_of(part) == kinds.OBJECT:
                self.operator_facts(part, site)
        if is_a(obj, type):
            self.read_class_attr(obj, "__class_getitem__", site)
        if kinds.kind_of(obj) in (kinds.SCALAR, kinds.IDENTITY):
            return
        if kinds.kind_of(obj) == kinds.OBJECT or type(obj).__module__ != "builtins":
            self.class_fact(type(obj), "__getitem__", site)
        node = self.node_for(obj)
        if node is None:
            if is_a(obj, dict):
                self.identified(site, False, key)
            return
        if node.kind == kinds.DICT:
            self.read_dict_key(node, key, site)
        elif node.kind in (kinds.LIST, kinds.TUPLE, kinds.DEQUE):
            self.read_sequence_item(node, key, site)
        elif node.kind == kinds.OPAQUE:
            self.refuse(
                "MP104",
                f"{HERE} reads an item of {a_type(obj)} from outside, whose memory no guard can watch.",
                hint="Keep the data in a tensor or a list, or look the item up outside the region.",
                site=site,
            )

    def read_dict_key(self, node: Node, key: Any, site: Any) -> None:
        obj, key = node.obj, kinds.plain_key(key)
        if type(obj) not in (dict, collections.OrderedDict, collections.defaultdict, collections.Counter) and (
            "__getitem__" in type(obj).__dict__
        ):
            return  # a Python override runs; its own reads are seen
        if not self.asked_quietly(node, site, key) or not hashing.hashable(key):
            return
        if is_a(key, weakref.ref):
            self.refuse("MP111", "A dict is asked for a weak reference, which stands for another object.", site=site)
            return
        self.read_dict_item(node, key, site)

    def read_dict_item(self, node: Node, key: Any, site: Any) -> None:
        obj = node.obj
        key_kind = kinds.kind_of(key)
        if key_kind not in (kinds.SCALAR, kinds.IDENTITY) and self.refgraph.node(key) is None and key_kind != kinds.TUPLE:
            if key_kind == kinds.TENSOR and id(key) in self.ops.values:
                return  # a tensor made inside can't be a key from outside
            if key_kind == kinds.OBJECT:
                self.node_for(key)
        present = dict.__contains__(obj, key)
        source = self.item_source(node, key, "dict_item")
        if node.snapshot is not None:
            now = dict.get(obj, key, ABSENT)
            if node.snapshot.entry(key) is not now:
                return
        if present:
            self.value(source, dict.__getitem__(obj, key), site, self.item_store(node, key))
        else:
            self.refgraph.read(source, guard.ABSENT, None, site)
            if hasattr(type(obj), "__missing__"):
                self.class_fact(type(obj), "__missing__", site)
                if is_a(obj, collections.defaultdict):
                    place = self.sources.make("field", node.source, "default_factory")
                    self.value(place, obj.default_factory, site)
                    self.function_fact(obj.default_factory)
                    if is_a(obj.default_factory, kinds.LEADING) and not is_a(obj.default_factory, type):
                        self.native_callback(site, obj.default_factory, [()], ())
                self.refgraph.snapshot(node)
                self.mark_written(node, site)

    def read_sequence_item(self, node: Node, key: Any, site: Any) -> None:
        obj = node.obj
        if "__getitem__" in type(obj).__dict__ and type(obj) not in (list, tuple, collections.deque, torch.Size):
            return
        size = natives.length(obj)
        if node.snapshot is not None or type(key) is not int:
            self.contents(node, site)
            return
        if not -size <= key < size:
            self.refgraph.read(self.sources.make("len", node.source, None), guard.EQUAL, size, site)
            return
        how = "list_item" if node.kind == kinds.LIST else "item"
        source = self.sources.make(how, node.source, int(key))
        self.value(source, natives.item(obj, int(key)), site, self.item_store(node, int(key)))

    def mark_written(self, node: Node, site: Any) -> None:
        raise NotImplementedError

    def native_callback(self, site: Any, fn: Any, calls: list[tuple[Any, ...]] | None, walked: Iterable[Any]) -> None:
        raise NotImplementedError
