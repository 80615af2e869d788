"""WriteEvents: first-touch snapshots before each write; what changed is found by difference at exit."""

from __future__ import annotations

import threading
import types
import weakref
from typing import Any, NoReturn

import torch
import torch.nn.functional as F
from torch import nn

from magpy_core._compat.torch.tensor_guards import mode_depth
from magpy_core.findings import HERE
from magpy_core.guards import kinds as guard
from magpy_core.recording.reads import ReadEvents
from magpy_core.recording.wording import a_type
from magpy_core.refgraph import kinds, lookup
from magpy_core.refgraph.fields import ABSENT, instance_dict, odd_dict
from magpy_core.refgraph.graph import Node
from magpy_core.refgraph.guard_kind import GuardKind
from magpy_core.refgraph.kinds import is_a
from magpy_core.refgraph.snapshot import Snapshot, take
from magpy_core.replay.ir import MadeInside

_MODULE_TABLES = ("_parameters", "_buffers", "_modules", "_non_persistent_buffers_set")


class Gone(Exception):
    """The recording has ended, and holds nothing any more."""


class WriteEvents(ReadEvents):
    """Observer methods for writes."""

    def mark_written(self, node: Node, site: Any) -> None:
        """Remember where, for the finding; the snapshot must have been taken already."""
        if len(node.written_at) < 8 and site not in node.written_at:
            node.written_at.append(site)
            self.places.remember(node.source, site)

    def writing(self, obj: Any, site: Any) -> Node | None:
        """``obj`` is about to change: snapshot it when it is from outside."""
        node = self.node_for(obj)
        if node is not None:
            self.refgraph.snapshot(node)
            self.mark_written(node, site)
        return node

    def attr_write(self, site: Any, obj: Any, value: Any) -> None:
        self.site = site
        self.write_attr(obj, site.name, site)

    def attr_delete(self, site: Any, obj: Any) -> None:
        self.site = site
        self.write_attr(obj, site.name, site, deleted=True)

    def keeps(self, snapshot: Snapshot) -> None:
        """A container is about to change: what has a finalizer must not live on in our copy of it."""
        content = snapshot.content
        if type(content) in (list, set):
            for value in content:
                values = value if snapshot.kind == kinds.DICT else (value,)
                for v in values:
                    if kinds.has_finalizer(type(v)):
                        text = f"This holds a {type(v).__name__}; when its `__del__` runs, replay can't repeat."
                        self.let_go(text, self.site)

    def only_kept_by_us(self, obj: Any) -> bool:
        """Whether the region has taken ``obj`` out of something that it has changed: our copy of that still holds it."""
        for node in self.refgraph.written():
            snapshot = node.snapshot
            if snapshot is not None and snapshot.holds(obj) and not take(node.obj, node.kind).holds(obj):
                return True
        return False

    def let_go(self, text: str, site: Any, code: str = "MP110", hint: str = "") -> NoReturn:
        """End the recording here, before an object's life is any longer than it would be without us."""
        self.refuse(code, text, site=site, hint=hint)
        self.gone = True
        self.refgraph.forget()
        self.only_inside.clear()
        self.ops.values.clear()
        self.calls.clear()
        self.pending_call = self.pending_torch = None
        raise Gone(text)

    def watched_die(self, text: str, site: Any) -> None:
        """Something is to happen when an object dies: no capture comes of it, and from now on no list of ours keeps any."""
        self.refuse("MP110", text, site=site)
        self.keeps_objects = False
        self.refgraph.assumed_internal.clear()

    def let_live(self, reference: Any, site: Any) -> None:
        """A weak reference that the region has made is asked: what it stands for must live no longer for our lists of it."""
        self._young = None
        for held in (self.refgraph.assumed_internal, self.only_inside):
            for key in [key for key, kept in held.items() if self.is_young(kept[0])]:
                del held[key]
        if is_a(weakref.ref.__call__(reference), torch.Tensor):
            text = f"{HERE} asks a weak reference for a tensor, which lives longer while it is recorded."
            self.let_go(text, site, "MP111", hint="Keep the tensor itself.")

    def write_attr(self, obj: Any, name: str, site: Any, *, deleted: bool = False, native: bool = False) -> None:
        before = (instance_dict(obj) or {}).get(name) if self.refgraph.node(obj) is not None else None
        if before is not None and kinds.has_finalizer(type(before)):
            text = f"This was a {type(before).__name__}; when its `__del__` runs, replay can't repeat."
            del before
            self.let_go(text, site)
        if is_a(obj, threading.local):
            self.thread_local(site)
            return
        if is_a(obj, torch.Tensor):
            raw, owner = lookup.class_lookup(type(obj), name)
            if owner is None or not lookup.is_data_descriptor(raw):
                node = self.refgraph.node(obj)
                if node is not None or id(obj) not in self.ops.values:
                    self.refuse("MP110", f"{HERE} is set on a tensor from outside; replay can't repeat it yet.", site=site)
            return
        if is_a(obj, (type, types.FunctionType)):
            if name == "__slotnames__":
                return  # copyreg's cache of what follows from the class
            if is_a(obj, types.FunctionType) and lookup.missing(lookup.class_lookup(types.FunctionType, name)[0]):
                node = self.function_dict(obj)
                if node is not None:
                    self.refgraph.snapshot(node)
                    self.mark_written(node, site)
                    node.forced.append(("set_item", name))
                return
            kind = "class" if is_a(obj, type) else "function"
            text = f"`{name}` is set on the {kind} `{obj.__qualname__}`, which replay can't repeat yet."
            hint = "Keep the value on an instance or in a global variable."
            self.only_inside.setdefault(id(obj), (obj, MadeInside("MP110", text, hint=hint), site))
            return
        if is_a(obj, types.ModuleType):
            if obj is F and mode_depth()[0]:  # a default device: torch asks its functions for themselves, by their names
                self.refuse("MP106", f"{HERE} replaces `{name}` of torch.nn.functional while a default device is set.",
                            hint="Replace it outside the region.", site=site)  # fmt: skip
            if self._sets_by_python(obj, lookup.class_lookup(type(obj), name)[0]):  # torch.backends.cudnn.enabled
                root = self.const_root(obj, obj.__name__)
                self.refgraph.snapshot(root)
                self.mark_written(root, site)
                root.forced.append(("set_attr", name))
            else:
                self.global_changed(obj.__dict__, name, site)
            return
        if is_a(obj, torch.jit.ScriptModule):
            self.refuse("MP112", f"{HERE} sets `{name}` of a torch.jit module, which replay can't repeat.", site=site)
            return
        tp = type(obj)
        self.class_fact(tp, "__setattr__", site)
        raw, owner = lookup.class_lookup(tp, name)
        if owner is not None and owner.__flags__ & (1 << 9):
            self.class_fact(tp, name, site)
            self.passed_over(tp, name, site)
        node = self.writing(obj, site)
        if node is not None:
            assert node.snapshot is not None
            if (odd := odd_dict(obj)) is not None and odd is not obj:
                self.refuse("MP110", f"{HERE} is set on {a_type(obj)}, whose `__dict__` is no plain dict.", site=site)
            if name == "__dict__":
                self.refuse("MP110", f"{HERE} replaces the whole `__dict__`, which replay can't repeat.", site=site)
            asked = deleted
            if is_a(lookup.class_lookup(tp, "__delattr__")[0], types.FunctionType) or (
                lookup.is_data_descriptor(raw) and not is_a(raw, types.MemberDescriptorType)
            ):
                deleted = False  # code of the program's does it, which is seen
            if deleted:
                self.presence(node, name, site)
            if not (deleted or native) and self._sets_by_python(obj, raw):
                return  # what that writes is seen, or is in the snapshot's difference; it may raise before it writes
            node.forced.append(("del_attr" if deleted else "set_attr", name))
        if node is not None and is_a(obj, nn.Module):
            d = instance_dict(obj) or {}
            deletes = asked and lookup.class_lookup(tp, "__delattr__")[0] is nn.Module.__delattr__
            if deletes:  # which of its tables that takes it from, no event shows
                self.class_fact(tp, "__delattr__", site)
                self.presence(node, name, site)
            for table in _MODULE_TABLES:
                members = d.get(table)
                if members is not None:
                    table_node = self.refgraph.add(members, self.sources.attr(node.source, table))
                    before = self.refgraph.snapshot(table_node)
                    self.mark_written(table_node, site)
                    table_node.forced.append(("maybe_item", name))
                    if deletes and table_node.kind == kinds.DICT:
                        entry = before.entry(name)
                        held: tuple[GuardKind, Any] = (guard.ABSENT, None) if entry is ABSENT else (guard.TYPE, type(entry))
                        self.refgraph.read(self.sources.item(table_node.source, name), *held, site)

    def write_past_setattr(self, obj: Any, name: str, site: Any) -> None:
        """``object.__setattr__(obj, name, value)``: a property or a descriptor of the program may answer that, or refuse."""
        raw, owner = lookup.class_lookup(type(obj), name)
        if owner is not None and owner.__flags__ & (1 << 9):
            self.class_fact(type(obj), name, site)
        node = self.writing(obj, site)
        by_descriptor = is_a(raw, property) or is_a(lookup.class_lookup(type(raw), "__set__")[0], types.FunctionType)
        if node is not None and not by_descriptor:
            node.forced.append(("set_attr", name))

    def _sets_by_python(self, obj: Any, raw: Any) -> bool:
        """Whether an attribute is set by the program's own code: its ``__setattr__``, a descriptor, a property (one without
        a setter raises, and nothing is written)."""
        by_class, _ = lookup.class_lookup(type(obj), "__setattr__")
        if is_a(by_class, types.FunctionType):
            return by_class is not nn.Module.__setattr__
        return is_a(raw, property) or is_a(lookup.class_lookup(type(raw), "__set__")[0], types.FunctionType)

    def presence(self, node: Node, name: str, site: Any) -> None:
        """An attribute is deleted, which raises where there is none."""
        assert node.snapshot is not None
        entry = node.snapshot.attr(name)
        if name in (node.snapshot.slots or {}):
            self.value(self.sources.make("filled", node.source, name), entry is not ABSENT, site)
        elif node.snapshot.attrs is not None:
            place = self.sources.item(self.sources.make("dict", node.source, None), name)
            if entry is not ABSENT:
                self.refgraph.read(place, guard.TYPE, type(entry), site)
            elif name not in (instance_dict(node.obj) or {}):
                self.refgraph.read(place, guard.ABSENT, None, site)

    def item_write(self, site: Any, obj: Any, key: Any, value: Any) -> None:
        self.site = site
        if is_a(obj, torch.Tensor):
            return
        if kinds.holds_memory(type(obj)) and self.data_item_written(site, obj, key, value):
            return
        if not self.keyed_by_address(obj, key):
            self.escape_all(site, key)
        if kinds.holds_memory(type(obj)):
            self.escape_all(site, value)  # native memory takes the exact number
            self.memory_read(site, obj, value)
        if kinds.kind_of(obj) == kinds.OPAQUE and self.refgraph.node(obj) is not None:
            self.refuse("MP110", f"{HERE} is written in {a_type(obj)} from outside; replay can't repeat it.", site=site)
            return
        self.class_fact(type(obj), "__setitem__", site)
        node = self.writing(obj, site)
        if node is None:
            if is_a(obj, dict):
                self.identified(site, False, key)
            return
        if node.kind == kinds.DICT or (node.kind == kinds.LIST and type(key) is int):
            if not self.asked_quietly(node, site, key):
                return  # nor may it be compared with what is read or written later
            if node.kind == kinds.LIST:
                assert node.snapshot is not None
                self.refgraph.read(
                    self.sources.make("len", node.source, None), guard.EQUAL, len(node.snapshot.content), site
                )
            node.forced.append(("set_item", key))
        else:
            self.contents(node, site)

    def item_delete(self, site: Any, obj: Any, key: Any) -> None:
        self.site = site
        if not self.keyed_by_address(obj, key):
            self.escape_all(site, key)
        node = self.writing(obj, site)
        if node is not None:
            if node.kind == kinds.DICT:
                self.read_dict_key(node, key, site)
                node.forced.append(("del_item", key))
            else:
                self.contents(node, site)

    def global_write(self, site: Any, value: Any) -> None:
        self._global_change(site)

    def global_delete(self, site: Any) -> None:
        self._global_change(site)

    def _global_change(self, site: Any) -> None:
        self.site = site
        self.global_changed(self.globals_of(site.code), site.name, site)

    def global_changed(self, g: dict[str, Any], name: str, site: Any) -> None:
        root = self.globals_root(g)
        self.refgraph.snapshot(root)
        # later reads of the name see the region's own value: every site of it has to be looked at again
        self._global_sites = {s for s in self._global_sites if s.name != name}
        self.mark_written(root, site)
        root.forced.append(("set_item", name))

    def cell_write(self, site: Any, cell: Any, value: Any) -> None:
        node = self.refgraph.node(cell)
        if node is None:
            self.assume_internal(cell)
            return
        self.site = site
        self.refgraph.snapshot(node)
        self.mark_written(node, site)
        node.forced.append(("set_cell", None))

    def cell_delete(self, site: Any, cell: Any) -> None:
        self.cell_write(site, cell, None)

    def field_written(self, tensor: torch.Tensor, name: str, value: Any) -> None:
        """``tensor.grad = value``: an effect on a tensor from outside."""
        node = self.refgraph.node(tensor)
        if node is None and id(tensor) in self.ops.values:
            self.refuse("MP106", f"{HERE} assigns the gradient of a tensor made inside the region.")
            return
        self.field_writes.append((tensor, name, value, self.site))
        if node is not None:
            self.places.remember(node.source, self.site)
