"""Items: ``obj[key]`` of containers from outside becomes a guard on that entry. Key type: Items."""

from __future__ import annotations

import collections
import weakref
from typing import Any

import torch

from magpy_core.findings import HERE
from magpy_core.guards import kinds as guard
from magpy_core.monitor.events import MaybeSite, Site
from magpy_core.recording.tracker import Tracker
from magpy_core.recording.wording import a_type
from magpy_core.refgraph import hashing, kinds, lookup, natives
from magpy_core.refgraph.fields import ABSENT
from magpy_core.refgraph.kinds import is_a
from magpy_core.refgraph.node import Node
from magpy_core.refgraph.snapshot import slot_name


def _is_appended(node: Node, key: int) -> bool:
    """Whether ``values[key]``, counted from the end, is what the region has appended, however long the list was before."""
    added = node.appended
    if not (node.kind in (kinds.LIST, kinds.DEQUE) and -len(added) <= key < 0):
        return False
    only_appends = all(op in ("append", "extend") for op, _ in node.forced)
    return only_appends and natives.item(node.obj, key) is added[key]


def _are_appended(node: Node, key: Any) -> bool:
    """Whether ``values[-n:]`` are the last elements that the region has appended."""
    if type(key) is not slice or key.stop is not None or key.step is not None or type(key.start) is not int:
        return False
    return all(_is_appended(node, place) for place in range(key.start, 0)) and key.start < 0


class Items(Tracker):
    """Handlers of item reads."""

    def item_read(self, site: MaybeSite, obj: Any, key: Any) -> None:
        self.journal.site = site
        self.read(obj, key, site)

    def item_read_result(self, site: Site, obj: Any, key: Any, result: Any) -> Any:
        return self.context.host_calls.item_result(site, obj, key, result)

    def read(self, obj: Any, key: Any, site: MaybeSite) -> None:
        if is_a(obj, torch.Tensor):
            return
        node = self.refgraph.node(obj) if type(key) is slice else None
        if not (node is not None and _are_appended(node, key)) and self.context.host_calls.reads_item(site, obj, key):
            return
        self.context.numbers.escape_all(site, key)
        if self.context.arrays.memory_read(site, obj):
            return
        for part in (key.start, key.stop, key.step) if type(key) is slice else (key,):
            if kinds.kind_of(part) == kinds.OBJECT:
                self.context.classes.special_methods(part, site)
        if is_a(obj, type):
            self.context.classes.read_attr(obj, "__class_getitem__", site)
        if kinds.kind_of(obj) in (kinds.SCALAR, kinds.IDENTITY):
            self.context.numbers.escape_texts(site, obj)
            return
        if kinds.kind_of(obj) == kinds.OBJECT or type(obj).__module__ != "builtins":
            self.context.classes.member(type(obj), "__getitem__", site)
        node = self.context.roots.node_for(obj)
        if node is None:
            if is_a(obj, dict):
                self.context.contents.compared_or_hashed(site, False, key)
            return
        if node.kind == kinds.DICT:
            self.dict_key(node, key, site)
        elif node.kind in (kinds.LIST, kinds.TUPLE, kinds.DEQUE):
            self.sequence_item(node, key, site)
        elif node.kind == kinds.OPAQUE:
            text = f"{HERE} reads an item of {a_type(obj)} that existed before: MagPy can't check its memory."
            hint = "Keep the data in a tensor or a list, or look the item up outside the region."
            self.journal.refuse("MP104", text, hint=hint, site=site)

    def dict_key(self, node: Node, key: Any, site: MaybeSite) -> None:
        obj, key = node.obj, kinds.plain_key(key)
        if lookup.overrides(type(obj), "__getitem__"):
            return  # reads of the Python method are observed
        if not self.context.contents.can_probe_unobserved(node, site, key) or not hashing.hashable(key):
            return
        if is_a(key, weakref.ref):
            text = f"{HERE} uses a weak reference as a dict key: guards can't check the object that it refers to."
            self.journal.refuse("MP111", text, hint="Use a name or a number of the object as the key.", site=site)
        else:
            self.dict_item(node, key, site)

    def dict_item(self, node: Node, key: Any, site: MaybeSite) -> None:
        obj = node.obj
        if is_a(key, torch.Tensor) and self.refgraph.node(key) is None and key in self.ledger.ops.values:
            return  # a tensor created inside can't be a key of a dict from outside
        if kinds.kind_of(key) == kinds.OBJECT:
            self.context.roots.node_for(key)
        source, now = self.context.contents.item_source(node, key), dict.get(obj, key, ABSENT)
        if node.snapshot is not None and node.snapshot.entry(key) is not now:
            return
        if now is not ABSENT:
            self.context.values.read(source, now, site, self.context.values.item_slot(node, key))
            return
        self.refgraph.read(source, guard.ABSENT, None, site)
        if hasattr(type(obj), "__missing__"):
            self.context.classes.member(type(obj), "__missing__", site)
            if is_a(obj, collections.defaultdict):
                factory, place = obj.default_factory, self.sources.make("field", node.source, "default_factory")
                self.context.values.read(place, factory, site)
                self.context.functions.guard(factory)
                if is_a(factory, kinds.REFERRING) and not is_a(factory, type):
                    self.context.callbacks.called(site, factory, [()], ())
            self.context.writes.mark_written(node, site)

    def _is_set_only_by_index(self, node: Node) -> bool:
        """Whether all that the region has done to a list is ``values[i] = value``: its other elements are where they were.
        Its length is guarded; other writes depend on all of its elements, which are then guarded."""
        return (
            node.snapshot is not None
            and node.kind == kinds.LIST
            and not (node.contents_read or node.appended)
            and all(op == "set_item" for op, _ in node.forced)
            and bool(node.forced)
        )

    def sequence_item(self, node: Node, key: Any, site: MaybeSite) -> None:
        obj = node.obj
        size = natives.length(obj)
        if lookup.overrides(type(obj), "__getitem__"):
            return  # reads of the Python method are observed
        if (type(key) is int and _is_appended(node, key)) or _are_appended(node, key):
            return
        if type(key) is int and -size <= key < size and self._is_set_only_by_index(node):
            place = key % size
            if not {slot_name(place), slot_name(place - size)} & node.noted.keys():
                slot = self.context.values.item_slot(node, place)
                self.context.values.read(
                    self.context.contents.item_source(node, place), natives.item(obj, place), site, slot
                )
        elif node.snapshot is not None or type(key) is not int:
            self.context.contents.read_all(node, site, carry=type(key) is slice)
        elif -size <= key < size:
            slot = self.context.values.item_slot(node, key)
            self.context.values.read(self.context.contents.item_source(node, key), natives.item(obj, key), site, slot)
        else:
            self.refgraph.read(self.sources.make("len", node.source, None), guard.EQUAL, size, site)
