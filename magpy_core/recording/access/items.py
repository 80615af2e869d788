"""Items: ``obj[key]`` of containers from outside becomes a guard on that entry. Key type: Items."""

from __future__ import annotations

import collections
import weakref
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

from magpy_core.findings import HERE
from magpy_core.guards import kinds as guard
from magpy_core.recording.arrays import Arrays
from magpy_core.recording.numbers import Numbers
from magpy_core.recording.tracker import Tracker
from magpy_core.recording.wording import a_type
from magpy_core.refgraph import hashing, kinds, natives
from magpy_core.refgraph.fields import ABSENT
from magpy_core.refgraph.graph import Node
from magpy_core.refgraph.kinds import is_a

if TYPE_CHECKING:
    from magpy_core.recording.groups import Access, Facts


@dataclass(eq=False)
class Items(Tracker):
    """Handlers of item reads."""

    numbers: Numbers
    arrays: Arrays
    facts: Facts
    access: Access

    def item_read(self, site: Any, obj: Any, key: Any) -> None:
        self.journal.site = site
        self.read(obj, key, site)

    def read(self, obj: Any, key: Any, site: Any) -> None:
        if is_a(obj, torch.Tensor):
            return
        self.numbers.escape_all(site, key)
        if self.arrays.memory_read(site, obj):
            return
        for part in (key.start, key.stop, key.step) if type(key) is slice else (key,):
            if kinds.kind_of(part) == kinds.OBJECT:
                self.facts.classes.special_methods(part, site)
        if is_a(obj, type):
            self.facts.classes.read_attr(obj, "__class_getitem__", site)
        if kinds.kind_of(obj) in (kinds.SCALAR, kinds.IDENTITY):
            return
        if kinds.kind_of(obj) == kinds.OBJECT or type(obj).__module__ != "builtins":
            self.facts.classes.member(type(obj), "__getitem__", site)
        node = self.facts.roots.node_for(obj)
        if node is None:
            if is_a(obj, dict):
                self.facts.contents.identified(site, False, key)
            return
        if node.kind == kinds.DICT:
            self.dict_key(node, key, site)
        elif node.kind in (kinds.LIST, kinds.TUPLE, kinds.DEQUE):
            self.sequence_item(node, key, site)
        elif node.kind == kinds.OPAQUE:
            self.journal.refuse(
                "MP104",
                f"{HERE} reads an item of {a_type(obj)} from outside, whose memory no guard can watch.",
                hint="Keep the data in a tensor or a list, or look the item up outside the region.",
                site=site,
            )

    def dict_key(self, node: Node, key: Any, site: Any) -> None:
        obj, key = node.obj, kinds.plain_key(key)
        if type(obj) not in (dict, collections.OrderedDict, collections.defaultdict, collections.Counter) and (
            "__getitem__" in type(obj).__dict__
        ):
            return  # a Python override runs; its own reads are seen
        if not self.facts.contents.can_probe_unobserved(node, site, key) or not hashing.hashable(key):
            return
        if is_a(key, weakref.ref):
            self.journal.refuse(
                "MP111",
                "A weak reference is used as a key of a dict; it stands for another object, which no guard can watch.",
                site=site,
            )
            return
        self.dict_item(node, key, site)

    def dict_item(self, node: Node, key: Any, site: Any) -> None:
        obj = node.obj
        key_kind = kinds.kind_of(key)
        if key_kind not in (kinds.SCALAR, kinds.IDENTITY) and self.refgraph.node(key) is None and key_kind != kinds.TUPLE:
            if key_kind == kinds.TENSOR and key in self.ledger.ops.values:
                return  # a tensor made inside can't be a key from outside
            if key_kind == kinds.OBJECT:
                self.facts.roots.node_for(key)
        present = dict.__contains__(obj, key)
        source = self.facts.contents.item_source(node, key, "dict_item")
        if node.snapshot is not None:
            now = dict.get(obj, key, ABSENT)
            if node.snapshot.entry(key) is not now:
                return
        if present:
            self.facts.values.read(source, dict.__getitem__(obj, key), site, self.facts.values.item_slot(node, key))
        else:
            self.refgraph.read(source, guard.ABSENT, None, site)
            if hasattr(type(obj), "__missing__"):
                self.facts.classes.member(type(obj), "__missing__", site)
                if is_a(obj, collections.defaultdict):
                    place = self.sources.make("field", node.source, "default_factory")
                    self.facts.values.read(place, obj.default_factory, site)
                    self.facts.functions.guard(obj.default_factory)
                    if is_a(obj.default_factory, kinds.LEADING) and not is_a(obj.default_factory, type):
                        self.access.callbacks.called(site, obj.default_factory, [()], ())
                self.refgraph.snapshot(node)
                self.access.writes.mark_written(node, site)

    def sequence_item(self, node: Node, key: Any, site: Any) -> None:
        obj = node.obj
        if "__getitem__" in type(obj).__dict__ and type(obj) not in (list, tuple, collections.deque, torch.Size):
            return
        size = natives.length(obj)
        if node.snapshot is not None or type(key) is not int:
            self.facts.contents.whole(node, site)
            return
        if not -size <= key < size:
            self.refgraph.read(self.sources.make("len", node.source, None), guard.EQUAL, size, site)
            return
        how = "list_item" if node.kind == kinds.LIST else "item"
        source = self.sources.make(how, node.source, int(key))
        self.facts.values.read(source, natives.item(obj, int(key)), site, self.facts.values.item_slot(node, int(key)))
