"""Contents: the content of containers from outside, read in full, by key or by length. Key type: Contents."""

from __future__ import annotations

import operator
from collections import deque
from dataclasses import dataclass, field
from typing import Any

from magpy_core.findings import HERE
from magpy_core.guards import kinds as guard
from magpy_core.monitor.events import MaybeSite
from magpy_core.recording.tracker import Tracker
from magpy_core.recording.wording import a_type
from magpy_core.refgraph import hashing, kinds, natives
from magpy_core.refgraph.fields import ABSENT
from magpy_core.refgraph.kinds import is_a
from magpy_core.refgraph.node import Node
from magpy_core.refgraph.source import Source

_HELD = kinds.CONTAINERS - {kinds.DICT}
_ITEM = {kinds.LIST: "list_item", kinds.DICT: "dict_item"}  # kinds of sources; "item" for others
_KEYS: Any = type({}.keys())
_BY_IDENTITY = (kinds.TENSOR, kinds.OBJECT, kinds.OPAQUE, kinds.TUPLE)
_PY_CONTENT_LIMIT = 20_000  # maximum number of elements of one container that guards check


@dataclass(frozen=True)
class VaryingLength:
    """A dynamic length: its source, its value at entry, the number of elements that the region appended, and the length that
    a deque does not exceed."""

    source: Source
    at_entry: int
    grown: int
    most: int | None = None


def _is_only_appended(node: Node, entry: list[Any]) -> bool:
    """Whether what the region has done to a list or deque is to append elements to those at ``entry``, of which the first
    are gone if it is bounded."""
    if getattr(node.obj, "maxlen", None) is not None:
        now = [*entry, *node.appended][-node.obj.maxlen :] if node.obj.maxlen else [node]
        return type(node.obj) is deque and len(now) == len(node.obj) and all(map(operator.is_, now, node.obj))
    return type(node.obj) in (list, deque) and len(node.obj) >= len(entry) and all(map(operator.is_, entry, node.obj))


class Contents(Tracker):
    """Guards the content of dicts, sets, lists, tuples and deques."""

    # id of the node of a dict or set -> whether MagPy may look up keys in it
    _pure_keys: dict[int, bool] = field(default_factory=dict, init=False)

    def length(self, node: Node, site: MaybeSite) -> VaryingLength | None:
        """``len`` of a container from outside; after a write the result still depends on the content at entry. A length that
        is known to be dynamic is returned instead of guarded."""
        source = self.sources.make("len", node.source, None)
        at_entry = size = natives.length(node.obj)
        only_appended = True
        if node.snapshot is not None and (entry := node.snapshot.content) is not None:
            at_entry = len(entry)
            only_appended = _is_only_appended(node, entry)
            if node.kind == kinds.DEQUE:
                self.context.values.read(self.sources.make("field", node.source, "maxlen"), node.obj.maxlen, site)
            if only_appended:
                size = at_entry + len(node.appended)
            self._sizes_of_writes(node, site)
        if only_appended and source.path in self.ledger.learned.numbers:
            return VaryingLength(source, at_entry, size - at_entry, getattr(node.obj, "maxlen", None))
        self.refgraph.read(source, guard.EQUAL, at_entry, site)
        return None

    def _sizes_of_writes(self, node: Node, site: MaybeSite) -> None:
        """Guard the presence of written keys or elements at entry: it determines whether a write changed the length."""
        if node.kind == kinds.SET:
            self.read_all(node, site)
        elif node.kind == kinds.DICT:
            assert node.snapshot is not None
            for key in [key for op, key in node.forced if op.endswith("_item")]:
                self.presence(self.item_source(node, key), node.snapshot.entry(key), site)

    def presence(self, source: Source, entry: Any, site: MaybeSite) -> None:
        """Guard whether ``source`` had a value at entry; ``entry`` is that value or ABSENT."""
        kind, expected = (guard.ABSENT, None) if entry is ABSENT else (guard.TYPE, type(entry))
        self.refgraph.read(source, kind, expected, site)

    def type_of(self, obj: Any, site: MaybeSite) -> None:
        node = self.refgraph.node(obj)
        if node is not None and node.kind not in (kinds.TENSOR, kinds.IDENTITY):
            self.refgraph.read(node.source, guard.TYPE, type(obj), site)

    def can_probe_unobserved(self, node: Node, site: MaybeSite, key: Any = "") -> bool:
        """Whether MagPy may look up ``key`` in a dict or set without running user code; refuses if not."""
        if node.kind not in (kinds.DICT, kinds.SET):
            return True
        if id(node) not in self._pure_keys:
            self._pure_keys[id(node)] = hashing.keys_have_pure_hash(node.obj)
        if self._pure_keys[id(node)] and hashing.has_pure_hash(key):
            return True
        impure = next((k for k in (key, *natives.keys(node.obj)) if not hashing.has_pure_hash(k)), key)
        kind, of = a_type(node.obj), a_type(impure)
        text = f"{HERE} looks up a key in {kind}; {of} is a key with a Python `__hash__` or `__eq__`: checking it "
        text += "would run them more often than the program does."
        self.journal.refuse("MP111", text, hint="Use plain values, tuples of them or members of an Enum as keys.", site=site)
        return False

    def compared_or_hashed(self, site: MaybeSite, fixed: bool, *values: Any, depth: int = 3) -> None:
        """Objects and tensors from outside are compared or hashed, by identity unless their class overrides it.

        ``fixed``: with elements of a set from outside, so each must be the same object; otherwise it matters only which of
        them are the same object.
        """
        for value in values:
            kind = kinds.kind_of(value)
            if depth and (kind in _HELD or is_a(value, _KEYS)):
                self.compared_or_hashed(site, fixed, *natives.elements(value), depth=depth - 1)
            if kind == kinds.OBJECT:
                self.context.classes.special_methods(value, site)
            if kind not in _BY_IDENTITY or (node := self.refgraph.node(value)) is None:
                continue
            if fixed and kind != kinds.TUPLE:
                self.refgraph.read(node.source, guard.IDENTITY, value, site)
            else:
                node.must_be_distinct = True

    def read_all(self, node: Node, site: MaybeSite, values: bool = True, *, carry: bool = False) -> None:
        """Guard the entire content at entry of an external container: length, order, keys and elements.

        ``carry``: the program gets the elements one by one (iteration, unpacking, a copy), so numbers among them may be
        symbolic; otherwise native code reads their exact values.
        """
        obj = node.obj
        if node.kind not in kinds.CONTAINERS or not self.can_probe_unobserved(node, site):
            return
        content = node.snapshot.content if node.snapshot is not None else None
        if node.contents_read and values:
            if not carry:
                self.context.numbers.escape_all(site, obj if content is None else content)
            return
        if node.kind == kinds.SET:
            entry = tuple(natives.elements(obj)) if node.snapshot is None else node.snapshot.order
            self.refgraph.read(node.source, guard.ELEMENTS, entry, site)
            node.contents_read = True
            return
        if node.kind == kinds.DICT:
            pairs = content if content is not None else natives.entries(obj)
            keys = tuple(k for k, _ in pairs)
            self.refgraph.read(node.source, guard.KEYS, keys, site)
            for i, k in enumerate(keys):
                if kinds.kind_of(k) not in (kinds.SCALAR, kinds.IDENTITY) and self.refgraph.node(k) is None:
                    self.context.values.read(self.sources.make("key_at", node.source, i), k, site)
            self.compared_or_hashed(site, False, *keys)
        else:
            pairs = list(enumerate(natives.elements(obj) if content is None else content))
            self.refgraph.read(self.sources.make("len", node.source, None), guard.EQUAL, len(pairs), site)
        if not values:
            return
        node.contents_read = True
        if len(pairs) > _PY_CONTENT_LIMIT:
            text = f"{HERE} reads {a_type(obj)} with {len(pairs)} elements in full: too many to guard."
            self.journal.refuse(
                "MP111", text, hint="Read only the elements that are needed, or keep the data in a tensor.", site=site
            )
            return
        for k, v in pairs:
            slot = self.context.values.item_slot(node, k)
            self.context.values.read(self.item_source(node, k), v, site, slot, exact=not carry)

    def item_source(self, node: Node, key: Any) -> Source:
        """Source of one element; a key that is itself an object from outside is part of the path."""
        key = kinds.plain_key(key)
        if (kind := kinds.kind_of(key)) != kinds.SCALAR:
            held = self.refgraph.node(key) if kind != kinds.IDENTITY else None
            key = self.sources.const(key, kinds.bounded_repr(key)) if held is None else held.source
        return self.sources.make(_ITEM.get(node.kind, "item"), node.source, key)

    def reread_all(self, node: Node) -> None:
        node.contents_read = False
        self.read_all(node, None)
