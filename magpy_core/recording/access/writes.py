"""Writes: a snapshot precedes each first write; the difference at exit is the effect. Key type: Writes."""

from __future__ import annotations

import threading
import types
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import torch
import torch.nn.functional as F
from torch import nn

from magpy_core._compat.torch.tensor_guards import mode_depth
from magpy_core.findings import HERE
from magpy_core.guards import kinds as guard
from magpy_core.recording.age import Age
from magpy_core.recording.arrays import Arrays
from magpy_core.recording.numbers import Numbers
from magpy_core.recording.tracker import Tracker
from magpy_core.recording.wording import a_type
from magpy_core.refgraph import kinds, lookup
from magpy_core.refgraph.fields import ABSENT, instance_dict, odd_dict
from magpy_core.refgraph.graph import Node
from magpy_core.refgraph.guard_kind import GuardKind
from magpy_core.refgraph.kinds import is_a
from magpy_core.replay.ir import MadeInside

if TYPE_CHECKING:
    from magpy_core.recording.groups import Access, Facts

_WRITTEN_TABLES = (*lookup.MODULE_TABLES, "_non_persistent_buffers_set")


@dataclass(eq=False)
class Writes(Tracker):
    """Handlers of writes and deletions."""

    age: Age
    numbers: Numbers
    arrays: Arrays
    facts: Facts
    access: Access
    events: int = field(default=0, init=False)
    existing: set[int] | None = field(default=None, init=False)  # ids of what the region had made when a checkpoint began

    def counted(self, obj: Any) -> None:
        """Writes to what the region has made are no effects, but a checkpoint's second run would make them again."""
        if self.existing is not None and id(obj) in self.existing:
            self.events += 1

    def blind_write(self, node: Node, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        """A write whose effect does not depend on what was there: note what it sets. False for every other mutator."""
        if node.kind == kinds.DEQUE and node.obj.maxlen is not None:
            if name == "append":
                node.forced.append(("append", args[0]))
                node.appended.append(args[0])
            elif name in ("extend", "__iadd__") and is_a(args[0], (list, tuple)):
                node.forced.extend(("append", v) for v in args[0])
                node.appended.extend(args[0])
            else:
                node.forced.append((name, None))
                return False
            return True
        if node.kind in (kinds.LIST, kinds.DEQUE) and name in ("append", "extend", "__iadd__"):
            if name == "append":
                node.appended.append(args[0])
            elif is_a(args[0], (list, tuple)):
                node.appended.extend(args[0])
            return True
        if name == "clear":
            node.forced.append(("clear", None))
            return True
        if node.kind == kinds.SET and name == "update" and all(is_a(a, (set, frozenset)) for a in args):
            node.forced.extend(("add", v) for a in args for v in a)
            return True
        if node.kind == kinds.SET and name in ("add", "discard"):
            node.forced.append((name, args[0]))
            node.told[id(args[0])] = args[0] if name == "add" else ABSENT
            return True
        if node.kind == kinds.DICT and name == "__setitem__":
            node.forced.append(("set_item", args[0]))
            node.tell(*args)
            return True
        if node.kind == kinds.DICT and name == "update" and all(is_a(a, dict) for a in args):
            for keys in (*args, kwargs):
                node.forced.extend(("set_item", k) for k in keys)
            return True
        return False

    def mark_written(self, node: Node, site: Any) -> None:
        """Remember where, for the finding; the snapshot must have been taken already."""
        self.events += 1
        if len(node.written_at) < 8 and site not in node.written_at:
            node.written_at.append(site)
            self.journal.places.remember(node.source, site)

    def before_write(self, obj: Any, site: Any) -> Node | None:
        """``obj`` is about to change: snapshot it when it is from outside."""
        self.counted(obj)
        node = self.facts.roots.node_for(obj)
        if node is not None:
            self.refgraph.snapshot(node)
            self.mark_written(node, site)
        return node

    def attr_write(self, site: Any, obj: Any, value: Any) -> None:
        self.journal.site = site
        self.attr(obj, site.name, site, value)

    def attr_delete(self, site: Any, obj: Any) -> None:
        self.journal.site = site
        self.attr(obj, site.name, site, deleted=True)

    def attr(
        self, obj: Any, name: str, site: Any, value: Any = ABSENT, *, deleted: bool = False, native: bool = False
    ) -> None:
        before = (instance_dict(obj) or {}).get(name) if self.refgraph.node(obj) is not None else None
        if before is not None and kinds.has_finalizer(type(before)):
            text = f"This was a {type(before).__name__}; replay can't repeat when its `__del__` runs."
            del before
            self.journal.abort(text, site)
        if is_a(obj, threading.local):
            self.access.reads.thread_local(site)
            return
        if is_a(obj, torch.Tensor):
            raw, owner = lookup.class_lookup(type(obj), name)
            if owner is None or not lookup.is_data_descriptor(raw):
                node = self.refgraph.node(obj)
                if node is not None or obj not in self.ledger.ops.values:
                    self.journal.refuse(
                        "MP110",
                        f"{HERE} sets an attribute of a tensor that existed before the region; replay can't repeat that.",
                        site=site,
                    )
            return
        if is_a(obj, (type, types.FunctionType)):
            if name == "__slotnames__":
                return  # copyreg's cache of what follows from the class
            if is_a(obj, types.FunctionType) and lookup.missing(lookup.class_lookup(types.FunctionType, name)[0]):
                node = self.facts.functions.attributes(obj)
                if node is not None:
                    self.refgraph.snapshot(node)
                    self.mark_written(node, site)
                    node.forced.append(("set_item", name))
                    node.tell(name, value)
                return
            kind = "class" if is_a(obj, type) else "function"
            text = f"`{name}` is set on the {kind} `{obj.__qualname__}`, which replay can't repeat yet."
            hint = "Keep the value on an instance or in a global variable."
            self.age.only_inside.setdefault(id(obj), (obj, MadeInside("MP110", text, hint=hint), site))
            return
        if is_a(obj, types.ModuleType):
            if obj is F and mode_depth()[0]:  # a default device: torch looks its functions up by name
                text = f"{HERE} replaces `{name}` of torch.nn.functional while a default device is set."
                self.journal.refuse("MP106", text, hint="Replace it outside the region.", site=site)
            if self._sets_by_python(obj, lookup.class_lookup(type(obj), name)[0]):  # torch.backends.cudnn.enabled
                root = self.facts.roots.const_root(obj, obj.__name__)
                self.refgraph.snapshot(root)
                self.mark_written(root, site)
                root.forced.append(("set_attr", name))
            else:
                self.access.globals.changed(obj.__dict__, name, site, value)
            return
        if is_a(obj, torch.jit.ScriptModule):
            self.journal.refuse(
                "MP112", f"{HERE} sets `{name}` of a torch.jit module, which replay can't repeat.", site=site
            )
            return
        tp = type(obj)
        self.facts.classes.member(tp, "__setattr__", site)
        raw, owner = lookup.class_lookup(tp, name)
        if owner is not None and kinds.is_heap_type(owner):
            self.facts.classes.member(tp, name, site)
            self.facts.classes.guard_shadowed_class_attr(tp, name, site)
        node = self.before_write(obj, site)
        if node is not None:
            assert node.snapshot is not None
            if (odd := odd_dict(obj)) is not None and odd is not obj:
                self.journal.refuse(
                    "MP110", f"{HERE} is set on {a_type(obj)}, whose `__dict__` is no plain dict.", site=site
                )
            if name == "__dict__":
                self.journal.refuse("MP110", f"{HERE} replaces the whole `__dict__`, which replay can't repeat.", site=site)
            by_statement = deleted
            if is_a(lookup.class_lookup(tp, "__delattr__")[0], types.FunctionType) or (
                lookup.is_data_descriptor(raw) and not is_a(raw, types.MemberDescriptorType)
            ):
                deleted = False  # code of the program's does it, which is seen
            if deleted:
                self.presence(node, name, site)
            if not (deleted or native) and self._sets_by_python(obj, raw):
                return  # what that writes is seen, or is in the snapshot's difference; it may raise before it writes
            node.forced.append(("del_attr" if deleted else "set_attr", name))
            node.tell(name, value)
        if node is not None and is_a(obj, nn.Module):
            d = instance_dict(obj) or {}
            deletes = by_statement and lookup.class_lookup(tp, "__delattr__")[0] is nn.Module.__delattr__
            if deletes:  # which of its tables that takes it from, no event shows
                self.facts.classes.member(tp, "__delattr__", site)
                self.presence(node, name, site)
            for table in _WRITTEN_TABLES:
                members = d.get(table)
                if members is not None:
                    table_node = self.refgraph.add(members, self.sources.attr(node.source, table))
                    before = self.refgraph.snapshot(table_node)
                    self.mark_written(table_node, site)
                    table_node.forced.append(("maybe_item", name))
                    table_node.tell(name, value)
                    if deletes and table_node.kind == kinds.DICT:
                        entry = before.entry(name)
                        held: tuple[GuardKind, Any] = (guard.ABSENT, None) if entry is ABSENT else (guard.TYPE, type(entry))
                        self.refgraph.read(self.sources.item(table_node.source, name), *held, site)

    def attr_past_setattr(self, obj: Any, name: str, site: Any, value: Any = ABSENT) -> None:
        """``object.__setattr__(obj, name, value)``: a property or a descriptor of the program may answer that, or refuse."""
        raw, owner = lookup.class_lookup(type(obj), name)
        if owner is not None and kinds.is_heap_type(owner):
            self.facts.classes.member(type(obj), name, site)
        node = self.before_write(obj, site)
        by_descriptor = is_a(raw, property) or is_a(lookup.class_lookup(type(raw), "__set__")[0], types.FunctionType)
        if node is not None and not by_descriptor:
            node.forced.append(("set_attr", name))
            node.tell(name, value)

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
            self.facts.values.read(self.sources.make("filled", node.source, name), entry is not ABSENT, site)
        elif node.snapshot.attrs is not None:
            place = self.sources.item(self.sources.make("dict", node.source, None), name)
            if entry is not ABSENT:
                self.refgraph.read(place, guard.TYPE, type(entry), site)
            elif name not in (instance_dict(node.obj) or {}):
                self.refgraph.read(place, guard.ABSENT, None, site)

    def item_write(self, site: Any, obj: Any, key: Any, value: Any) -> None:
        self.journal.site = site
        if is_a(obj, torch.Tensor):
            return
        self.numbers.escape_all(site, key)
        if kinds.holds_memory(type(obj)):
            self.numbers.escape_all(site, value)  # native memory takes the exact number
            self.arrays.memory_read(site, obj, value)
        if kinds.kind_of(obj) == kinds.OPAQUE and self.refgraph.node(obj) is not None:
            self.journal.refuse(
                "MP110",
                f"{HERE} writes an item of {a_type(obj)} that existed before the region; replay can't repeat that.",
                site=site,
            )
            return
        self.facts.classes.member(type(obj), "__setitem__", site)
        node = self.before_write(obj, site)
        if node is None:
            if is_a(obj, dict):
                self.facts.contents.identified(site, False, key)
            return
        if node.kind == kinds.DICT or (node.kind == kinds.LIST and type(key) is int):
            if not self.facts.contents.can_probe_unobserved(node, site, key):
                return  # nor may it be compared with what is read or written later
            if node.kind == kinds.LIST:
                assert node.snapshot is not None
                self.refgraph.read(
                    self.sources.make("len", node.source, None), guard.EQUAL, len(node.snapshot.content), site
                )
            node.forced.append(("set_item", key))
            node.tell(key, value)
        else:
            self.facts.contents.whole(node, site)

    def item_delete(self, site: Any, obj: Any, key: Any) -> None:
        self.journal.site = site
        self.numbers.escape_all(site, key)
        node = self.before_write(obj, site)
        if node is not None:
            if node.kind == kinds.DICT:
                self.access.items.dict_key(node, key, site)
                node.forced.append(("del_item", key))
                node.tell(key, ABSENT)
            else:
                self.facts.contents.whole(node, site)

    def cell_write(self, site: Any, cell: Any, value: Any) -> None:
        self.counted(cell)
        node = self.refgraph.node(cell)
        if node is None:
            self.age.assume_internal(cell)
            return
        self.journal.site = site
        self.refgraph.snapshot(node)
        self.mark_written(node, site)
        node.forced.append(("set_cell", None))
        node.tell(None, value)

    def cell_delete(self, site: Any, cell: Any) -> None:
        self.cell_write(site, cell, ABSENT)

    def field_written(self, tensor: torch.Tensor, name: str, value: Any) -> None:
        """``tensor.grad = value``: an effect on a tensor from outside."""
        node = self.refgraph.node(tensor)
        if node is None and tensor in self.ledger.ops.values:
            self.journal.refuse("MP106", f"{HERE} assigns the gradient of a tensor made inside the region.")
            return
        self.ledger.field_writes.append((tensor, name, value, self.journal.site))
        if node is not None:
            self.journal.places.remember(node.source, self.journal.site)
