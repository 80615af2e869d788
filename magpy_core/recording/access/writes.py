"""Writes: a snapshot precedes each first write; the difference at exit is the effect. Key type: Writes."""

from __future__ import annotations

import threading
import types
from collections.abc import Callable, Sequence
from dataclasses import field
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

from magpy_core._compat.torch.tensor_guards import mode_depth
from magpy_core.findings import HERE
from magpy_core.guards import kinds as guard
from magpy_core.monitor.events import MaybeSite, Site
from magpy_core.recording.age import Existing
from magpy_core.recording.tracker import Tracker
from magpy_core.recording.wording import a_type
from magpy_core.refgraph import kinds, lookup
from magpy_core.refgraph.fields import ABSENT, cell_value, custom_dict, instance_dict
from magpy_core.refgraph.kinds import is_a
from magpy_core.refgraph.node import Node
from magpy_core.refgraph.snapshot import Snapshot
from magpy_core.refgraph.stand_in import StandIn
from magpy_core.replay.ir import MadeInside

_ONE_BY_ONE = "Set the attributes one by one, of an object with a plain `__dict__`."


def _elements_added(node: Node, name: str, args: tuple[Any, ...], bounded: bool) -> bool:
    added: Sequence[Any] | None  # None: unknown until they have been added
    if name == "append":
        added = args[:1]
    else:
        added = args[0] if is_a(args[0], (list, tuple)) else None
    node.appended.extend(added or ())
    if bounded:
        node.forced.extend([(name, None)] if added is None else [("append", v) for v in added])
    return not bounded or added is not None


def _cleared(node: Node, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    node.forced.append(("clear", None))
    return True


def _set_updated(node: Node, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    if not all(is_a(a, (set, frozenset)) for a in args):
        return False
    node.forced.extend(("add", v) for a in args for v in a)
    return True


def _set_element(node: Node, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    node.forced.append((name, args[0]))
    node.noted[id(args[0])] = args[0] if name == "add" else ABSENT
    return True


def _dict_item(node: Node, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    node.forced.append(("set_item", args[0]))
    node.note_write(*args)
    return True


def _dict_updated(node: Node, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    if not all(is_a(a, dict) for a in args):
        return False
    node.forced.extend(("set_item", k) for keys in (*args, kwargs) for k in keys)
    return True


# Notes the values of a write, by kind of container and method. False: their effect depends on the old content after all.
_BLIND_WRITES: dict[tuple[int, str], Callable[[Node, str, tuple[Any, ...], dict[str, Any]], bool]] = {
    **{(kind, "clear"): _cleared for kind in kinds.CONTAINERS},
    (kinds.SET, "update"): _set_updated,
    (kinds.SET, "add"): _set_element,
    (kinds.SET, "discard"): _set_element,
    (kinds.DICT, "__setitem__"): _dict_item,
    (kinds.DICT, "update"): _dict_updated,
}


class Writes(Tracker):
    """Handlers of writes and deletions."""

    events: int = field(default=0, init=False)
    existing: Existing | None = field(default=None, init=False)  # the objects that existed when a checkpoint began

    def count_write(self, obj: Any) -> None:
        """Count a write to an object of the region: it is not an effect, but a checkpoint's second run would repeat it."""
        if self.existing is not None and obj in self.existing:
            self.events += 1

    def blind_write(self, node: Node, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        """Note the values of a write whose effect does not depend on the old content. False for any other mutator."""
        bounded = node.kind == kinds.DEQUE and node.obj.maxlen is not None
        if node.kind in (kinds.LIST, kinds.DEQUE) and name in ("append", "extend", "__iadd__"):
            return _elements_added(node, name, args, bounded)
        if bounded:  # the old content decides which elements drop out
            node.forced.append((name, None))
            return False
        note = _BLIND_WRITES.get((node.kind, name))
        return note is not None and note(node, name, args, kwargs)

    def mark_written(self, node: Node, site: MaybeSite, *, of_variable: bool = False) -> Snapshot:
        """``node`` is about to change: returns its state before the first write, and notes the site for findings."""
        self.events += 1
        if site not in node.written_at:
            node.written_at[site] = None
            self.journal.places.remember(node.source, site)
        return self.refgraph.snapshot(node, of_variable=of_variable)

    def variable_written(self, namespace: Node, name: str, value: Any, site: MaybeSite) -> None:
        """A global variable is about to be set to ``value``, or deleted. No other variable is concerned."""
        self._refuse_finalizer(dict.get(namespace.obj, name), site)
        namespace.forced.append(("set_item", name))
        namespace.note_write(name, value)
        namespace.note_site(name, site)
        self.mark_written(namespace, site, of_variable=True)

    def _refuse_finalizer(self, before: Any, site: MaybeSite) -> None:
        """``before`` is about to be replaced."""
        if before is not None and kinds.has_finalizer(type(before)):
            text = f"{HERE} replaces a `{type(before).__name__}`; compiled code can't repeat when its `__del__` runs."
            del before
            hint = "Replace it outside the region, or free what it holds in a method that you call."
            self.journal.abort(text, site, hint=hint)

    def slot_written(self, node: Node, op: str, key: Any, value: Any, site: MaybeSite) -> Snapshot:
        """An event shows that a slot of ``node`` is about to be set to ``value``, or deleted."""
        node.forced.append((op, key))
        node.note_write(key, value)
        node.note_site(key, site)
        return self.mark_written(node, site)

    def before_write(self, obj: Any, site: MaybeSite) -> Node | None:
        """``obj`` is about to change: take a snapshot if it is from outside."""
        self.count_write(obj)
        node = self.context.roots.node_for(obj)
        if node is not None:
            self.mark_written(node, site)
        return node

    def attr_write(self, site: Site, obj: Any, value: Any) -> None:
        self.journal.site = site
        self.attr(obj, site.name, site, value)

    def attr_delete(self, site: Site, obj: Any) -> None:
        self.journal.site = site
        self.attr(obj, site.name, site, deleted=True)

    def attr(
        self, obj: Any, name: str, site: MaybeSite, value: Any = ABSENT, *, deleted: bool = False, native: bool = False
    ) -> None:
        if is_a(obj, StandIn):
            obj = self.context.values.behind(obj, site)
        if kinds.kind_of(obj) != kinds.OBJECT:
            self.context.numbers.escape_texts(site, value)  # what native code does with it has no event
        if self.refgraph.node(obj) is not None:
            self._refuse_finalizer((instance_dict(obj) or {}).get(name), site)
        if is_a(obj, threading.local):
            self.context.reads.thread_local(site)
        elif is_a(obj, torch.Tensor):
            known = self.refgraph.node(obj) is not None or obj not in self.ledger.ops.values
            if known and not lookup.is_data_descriptor(lookup.class_lookup(type(obj), name)[0]):
                text = (
                    f"{HERE} sets an attribute of a tensor that existed before the region; compiled code can't repeat that."
                )
                hint = "Keep the value in an attribute of the module, or in a dict by the tensor's name."
                self.journal.refuse("MP110", text, hint=hint, site=site)
        elif kinds.holds_memory(type(obj)) and self.context.arrays.memory_read(site, obj):
            return  # `array.shape = ...`
        elif is_a(obj, (type, types.FunctionType)):
            self._definition_attr(obj, name, site, value)
        elif is_a(obj, types.ModuleType):
            if obj is F and mode_depth()[0]:  # a default device is set: torch looks up its functions by name
                text = f"{HERE} replaces `{name}` of torch.nn.functional while a default device is set."
                self.journal.refuse("MP106", text, hint="Replace it outside the region.", site=site)
            if self._sets_by_python(obj, lookup.class_lookup(type(obj), name)[0]):  # torch.backends.cudnn.enabled
                root = self.context.roots.const_root(obj, obj.__name__)
                self.mark_written(root, site)
                root.forced.append(("set_attr", name))
            else:
                self.context.globals.changed(obj.__dict__, name, site, value)
        elif is_a(obj, torch.jit.ScriptModule):
            text = f"{HERE} sets `{name}` of a torch.jit module: compiled code can't repeat that."
            self.journal.refuse("MP112", text, site=site)
        else:
            self._object_attr(obj, name, site, value, deleted, native)

    def _definition_attr(self, obj: Any, name: str, site: MaybeSite, value: Any) -> None:
        """An attribute of a class or function is set or deleted."""
        if is_a(obj, types.FunctionType) and lookup.missing(lookup.class_lookup(types.FunctionType, name)[0]):
            node = self.context.functions.attributes(obj)
            if node is not None:
                self.slot_written(node, "set_item", name, value, site)
        elif is_a(obj, type) and self._sets_number_of_class(obj, name, site, value):
            return
        elif name != "__slotnames__":  # a cache of copyreg that the class determines
            kind = "class" if is_a(obj, type) else "function"
            text = f"`{name}` is set on the {kind} `{obj.__qualname__}`: compiled code can't repeat that yet."
            hint = "Keep the value on an instance or in a global variable."
            self.context.age.only_inside.setdefault(id(obj), (obj, MadeInside("MP110", text, hint=hint), site))

    def _sets_number_of_class(self, cls: type, name: str, site: MaybeSite, value: Any) -> bool:
        """Whether a number of a class is replaced by one of the same type (`Trainer.count += 1`), which replay does, too."""
        if type(cls) is not type or not kinds.is_heap_type(cls) or type(value) not in kinds.NUMBER_TYPES:
            return False
        before = cls.__dict__.get(name)
        source = self.context.roots.attribute(cls, name)
        if type(before) is not type(value) or source.path in self.ledger.learned.exact:
            return False
        key = id(cls), name
        if key not in self.refgraph.class_writes:
            if any(read.source is source and read.kind is not guard.TYPE for read in self.refgraph.reads):
                self.ledger.learned.numbers.add(source.path)
                self.journal.skip_call(f"`{cls.__qualname__}.{name}` was read as a number that does not change")
            self.context.classes.shape(cls, site)
            self.refgraph.read(self.context.roots.const_root(cls).source, guard.TYPE, type, site)
            self.refgraph.read(source, guard.TYPE, type(before), site)
        *_, sites = self.refgraph.class_writes.get(key, ([],))
        self.refgraph.class_writes[key] = cls, name, value, [*sites, site]
        self.ledger.other_effects += 1
        return True

    def _object_attr(self, obj: Any, name: str, site: MaybeSite, value: Any, deleted: bool, native: bool) -> None:
        tp = type(obj)
        self.context.classes.member(tp, "__setattr__", site)
        raw, owner = lookup.class_lookup(tp, name)
        if owner is not None and kinds.is_heap_type(owner):
            self.context.classes.member(tp, name, site)
            self.context.classes.guard_shadowed_class_attr(tp, name, site)
        node = self.before_write(obj, site)
        if node is None:
            return
        if (custom := custom_dict(obj)) is not None and custom is not obj:
            text = f"{HERE} is set on {a_type(obj)}, whose `__dict__` is not a plain dict: compiled code can't repeat that."
            self.journal.refuse("MP110", text, hint=_ONE_BY_ONE, site=site)
        if name == "__dict__":
            text = f"{HERE} replaces the whole `__dict__`: compiled code can't repeat that."
            self.journal.refuse("MP110", text, hint=_ONE_BY_ONE, site=site)
        deleter = lookup.class_lookup(tp, "__delattr__")[0]
        plain = not lookup.is_data_descriptor(raw) or is_a(raw, types.MemberDescriptorType)
        unset = deleted and plain and not is_a(deleter, types.FunctionType)  # otherwise observed Python code does it
        if unset:
            self.presence(node, name, site)
        if not (unset or native) and self._sets_by_python(obj, raw):
            return  # its writes are observed or in the snapshot's difference; it may raise before it writes
        self.slot_written(node, "del_attr" if unset else "set_attr", name, value, site)
        if is_a(obj, nn.Module):
            self._module_tables(node, name, site, value, deleted and deleter is nn.Module.__delattr__)

    def _module_tables(self, node: Node, name: str, site: MaybeSite, value: Any, deleted: bool) -> None:
        """``nn.Module.__setattr__`` and ``__delattr__`` may change any of a module's tables without an event."""
        if deleted:
            self.context.classes.member(type(node.obj), "__delattr__", site)
            self.presence(node, name, site)
        d = instance_dict(node.obj) or {}
        for table in (*lookup.MODULE_TABLES, "_non_persistent_buffers_set"):
            members = d.get(table)
            if members is not None:
                table_node = self.refgraph.add(members, self.sources.attr(node.source, table))
                before = self.slot_written(table_node, "maybe_item", name, value, site)
                if deleted and table_node.kind == kinds.DICT:
                    self.context.contents.presence(self.sources.item(table_node.source, name), before.entry(name), site)

    def attr_past_setattr(self, obj: Any, name: str, site: MaybeSite, value: Any = ABSENT) -> None:
        """``object.__setattr__(obj, name, value)``: a property or descriptor of the program may handle it, or raise."""
        raw, owner = lookup.class_lookup(type(obj), name)
        if owner is not None and kinds.is_heap_type(owner):
            self.context.classes.member(type(obj), name, site)
        node = self.before_write(obj, site)
        by_descriptor = is_a(raw, property) or is_a(lookup.class_lookup(type(raw), "__set__")[0], types.FunctionType)
        if node is not None and not by_descriptor:
            self.slot_written(node, "set_attr", name, value, site)

    def _sets_by_python(self, obj: Any, raw: Any) -> bool:
        """Whether an attribute is set by the program's own code: its ``__setattr__``, a descriptor, a property (one without
        a setter raises, and nothing is written)."""
        by_class, _ = lookup.class_lookup(type(obj), "__setattr__")
        if is_a(by_class, types.FunctionType):
            return by_class is not nn.Module.__setattr__
        return is_a(raw, property) or is_a(lookup.class_lookup(type(raw), "__set__")[0], types.FunctionType)

    def presence(self, node: Node, name: str, site: MaybeSite) -> None:
        """Guard the presence of an attribute that is deleted: a deletion raises if there is none."""
        assert node.snapshot is not None
        entry, attrs = node.snapshot.attr(name), node.snapshot.attrs
        if name in (node.snapshot.slots or {}):
            self.context.values.read(self.sources.make("filled", node.source, name), entry is not ABSENT, site)
        elif attrs is not None and (entry is not ABSENT or name not in (instance_dict(node.obj) or {})):
            place = self.sources.item(self.sources.make("dict", node.source, None), name)
            self.context.contents.presence(place, entry, site)

    def item_write(self, site: MaybeSite, obj: Any, key: Any, value: Any) -> None:
        self.journal.site = site
        if is_a(obj, torch.Tensor):
            return
        if self.context.array_values.stores(site, obj, key, value):
            return
        self.context.numbers.escape_all(site, key)
        if kinds.holds_memory(type(obj)):
            self.context.numbers.escape_all(site, value)  # native memory stores the exact number
            self.context.arrays.memory_read(site, obj, value)
        if kinds.kind_of(obj) == kinds.OPAQUE and self.refgraph.node(obj) is not None:
            text = f"{HERE} writes an item of {a_type(obj)} that existed before the region; compiled code can't repeat that."
            self.journal.refuse("MP110", text, hint="Keep the data in a tensor or a list, or write it outside.", site=site)
            return
        self.context.classes.member(type(obj), "__setitem__", site)
        self.slice_stored(site, obj, key, value)
        node = self.before_write(obj, site)
        if node is None:
            if is_a(obj, dict):
                self.context.contents.compared_or_hashed(site, False, key)
            return
        if node.kind == kinds.DICT or (node.kind == kinds.LIST and type(key) is int):
            if not self.context.contents.can_probe_unobserved(node, site, key):
                return  # nor may the key be compared with later ones
            if node.kind == kinds.LIST:
                size = len(self.refgraph.snapshot(node).content)
                self.refgraph.read(self.sources.make("len", node.source, None), guard.EQUAL, size, site)
            self.slot_written(node, "set_item", key, value, site)
        else:
            self.context.contents.read_all(node, site)

    def slice_stored(self, site: MaybeSite, obj: Any, key: Any, value: Any) -> None:
        """``values[a:b] = value`` takes the elements of ``value``."""
        if type(key) is slice and kinds.kind_of(obj) == kinds.LIST:
            self.context.arguments.read(site, (value,), {}, shallow=0, carry=True)

    def item_delete(self, site: MaybeSite, obj: Any, key: Any) -> None:
        self.journal.site = site
        self.context.numbers.escape_all(site, key)
        node = self.before_write(obj, site)
        if node is not None and node.kind == kinds.DICT:
            self.context.items.dict_key(node, key, site)
            self.slot_written(node, "del_item", key, ABSENT, site)
        elif node is not None:
            self.context.contents.read_all(node, site)

    def cell_write(self, site: MaybeSite, cell: Any, value: Any = ABSENT) -> None:
        self.count_write(cell)
        node = self.refgraph.node(cell)
        if node is None:
            self.context.age.assume_internal(cell)
            return
        self.journal.site = site
        self._refuse_finalizer(cell_value(cell), site)
        self.slot_written(node, "set_cell", None, value, site)

    cell_delete = cell_write

    def field_written(self, tensor: torch.Tensor, name: str, value: Any) -> None:
        """``tensor.grad = value``: an effect on a tensor from outside."""
        node = self.refgraph.node(tensor)
        if node is None and tensor in self.ledger.ops.values:
            text = f"{HERE} assigns the gradient of a tensor created inside the region."
            self.journal.refuse("MP118", text, hint="Keep the gradient in a separate variable.")
            return
        self.ledger.field_writes.append((tensor, name, value, self.journal.site))
        if node is not None:
            self.journal.places.remember(node.source, self.journal.site)
