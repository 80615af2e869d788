"""ContentReads: what a container from outside holds, read whole or by key, and the places where its numbers stand.

Key type: ContentReads.
"""

from __future__ import annotations

from typing import Any

from magpy_core.findings import HERE
from magpy_core.guards import kinds as guard
from magpy_core.recording.base import RecordingState, Slot
from magpy_core.recording.wording import a_type
from magpy_core.refgraph import hashing, kinds, natives
from magpy_core.refgraph.graph import Node
from magpy_core.refgraph.kinds import is_a
from magpy_core.refgraph.source import Source

_HELD = (kinds.SET, kinds.LIST, kinds.TUPLE, kinds.DEQUE)
_KEYS: Any = type({}.keys())
_BY_IDENTITY = (kinds.TENSOR, kinds.OBJECT, kinds.OPAQUE, kinds.TUPLE)
_PY_CONTENT_LIMIT = 20_000  # elements of one container that a guard may watch


class ContentReads(RecordingState):
    """Reads dicts, sets, lists, tuples and deques."""

    def asked_quietly(self, node: Node, site: Any, key: Any = "") -> bool:
        """Whether a dict or a set may be looked into for ``key`` once more than the program does; refuses where not."""
        if node.kind not in (kinds.DICT, kinds.SET):
            return True
        if id(node) not in self.quiet_keys:
            self.quiet_keys[id(node)] = hashing.quiet_keys(node.obj)
        if self.quiet_keys[id(node)] and hashing.quiet(key):
            return True
        loud = next((k for k in (key, *natives.keys(node.obj)) if not hashing.quiet(k)), key)
        self.refuse(
            "MP111",
            f"{HERE} looks into {a_type(node.obj)} with a key that hashes or compares by code of its own ({a_type(loud)}), "
            "which must not run more often than the program runs it.",
            hint="Let `__hash__` and `__eq__` do nothing but hash and compare attributes, or use plain values as keys.",
            site=site,
        )
        return False

    def operator_facts(self, obj: Any, site: Any) -> None:
        raise NotImplementedError

    def identified(self, site: Any, asked: bool, *values: Any, depth: int = 3) -> None:
        """Objects and tensors from outside are compared or hashed: by what they are, wherever their class says nothing else.

        ``asked``: with those that a set from outside holds, so each must stay the same one; among themselves it counts only
        which of them are one.
        """
        for value in values:
            kind = kinds.kind_of(value)
            if depth and (kind in _HELD or is_a(value, _KEYS)):
                self.identified(site, asked, *natives.elements(value), depth=depth - 1)
            if kind == kinds.OBJECT:
                self.operator_facts(value, site)
            if kind not in _BY_IDENTITY or (node := self.refgraph.node(value)) is None:
                continue
            if asked and kind != kinds.TUPLE:
                self.refgraph.read(node.source, guard.IDENTITY, value, site)
            else:
                node.addressed = True

    def contents(self, node: Node, site: Any, values: bool = True, *, carry: bool = False) -> None:
        """The whole (entry) content of an external container is read: length, order, keys and elements.

        ``carry``: the elements reach the program one by one (iteration, unpacking, a copy), so numbers among them may be
        symbolic; otherwise native code reads them, and their exact values count.
        """
        obj = node.obj
        if not self.asked_quietly(node, site):
            return
        content = node.snapshot.content if node.snapshot is not None else None
        if node.contents_read and values:
            if not carry:
                self.escape_all(site, obj if content is None else content)
            return
        if node.kind in (kinds.LIST, kinds.TUPLE, kinds.DEQUE):
            items = content if content is not None else list(natives.elements(obj))
            self.refgraph.read(self.sources.make("len", node.source, None), guard.EQUAL, len(items), site)
            how = "list_item" if node.kind == kinds.LIST else "item"
            pairs = [(i, v, how) for i, v in enumerate(items)]
        elif node.kind == kinds.DICT:
            entries = content if content is not None else natives.entries(obj)
            self.refgraph.read(node.source, guard.KEYS, tuple(k for k, _ in entries), site)
            pairs = []
            for i, (k, v) in enumerate(entries):
                if kinds.kind_of(k) not in (kinds.SCALAR, kinds.IDENTITY) and self.refgraph.node(k) is None:
                    self.value(self.sources.make("key_at", node.source, i), k, site)
                pairs.append((k, v, "dict_item"))
            self.identified(site, False, *(k for k, _ in entries))
        elif node.kind == kinds.SET:
            entry = tuple(natives.elements(obj)) if node.snapshot is None else node.snapshot.order
            self.refgraph.read(node.source, guard.ELEMENTS, entry, site)
            node.contents_read = True
            return
        else:
            return
        if not values:
            return
        node.contents_read = True
        if len(pairs) > _PY_CONTENT_LIMIT:
            self.refuse(
                "MP111", f"{HERE} reads {a_type(obj)} of {len(pairs)} elements whole: too many for guards.", site=site
            )
            return
        for k, v, how in pairs:
            self.value(self.item_source(node, k, how), v, site, self.item_store(node, k), exact=not carry)

    def item_source(self, node: Node, key: Any, how: str) -> Source:
        """Source of one element; a key that is itself an object from outside is part of the path."""
        key = kinds.plain_key(key)
        if kinds.kind_of(key) != kinds.SCALAR:
            key_node = self.refgraph.node(key) if kinds.kind_of(key) != kinds.IDENTITY else None
            place = self.sources.const(key, kinds.bounded_repr(key)) if key_node is None else key_node.source
            return self.sources.make(how, node.source, place)
        return self.sources.make(how, node.source, key)

    def item_store(self, node: Node, key: Any) -> Slot | None:
        obj, kind, key = node.obj, node.kind, kinds.plain_key(key)
        if self.written_over(node, key):
            return None
        if kind == kinds.LIST:

            def set_list(v: Any) -> None:
                if node.snapshot is not None and node.snapshot.content[key] is list.__getitem__(obj, key):
                    node.snapshot.content[key] = v
                list.__setitem__(obj, key, v)

            return Slot(lambda: list.__getitem__(obj, key) if -len(obj) <= key < len(obj) else None, set_list)
        if kind == kinds.DICT:

            def set_dict(v: Any) -> None:
                if node.snapshot is not None:
                    old = dict.get(obj, key)
                    node.snapshot.content = [
                        (k, v if e is old and hashing.same_key(k, key) else e) for k, e in node.snapshot.content
                    ]
                dict.__setitem__(obj, key, v)

            return Slot(lambda: dict.get(obj, key), set_dict)
        return None
