"""Contents: what a container from outside holds, read whole, by key or by length. Key type: Contents."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from magpy_core.findings import HERE
from magpy_core.guards import kinds as guard
from magpy_core.recording.numbers import Numbers
from magpy_core.recording.tracker import Tracker
from magpy_core.recording.wording import a_type
from magpy_core.refgraph import hashing, kinds, natives
from magpy_core.refgraph.fields import ABSENT
from magpy_core.refgraph.graph import Node
from magpy_core.refgraph.kinds import is_a
from magpy_core.refgraph.source import Source

if TYPE_CHECKING:
    from magpy_core.recording.groups import Facts

_HELD = (kinds.SET, kinds.LIST, kinds.TUPLE, kinds.DEQUE)
_KEYS: Any = type({}.keys())
_BY_IDENTITY = (kinds.TENSOR, kinds.OBJECT, kinds.OPAQUE, kinds.TUPLE)
_PY_CONTENT_LIMIT = 20_000  # elements of one container that a guard may watch


@dataclass(frozen=True)
class VaryingLength:
    """A length that may differ at each call: its source, its value at entry, and how many elements the region appended."""

    source: Source
    at_entry: int
    grown: int


@dataclass(eq=False)
class Contents(Tracker):
    """Guards the content of dicts, sets, lists, tuples and deques."""

    numbers: Numbers
    facts: Facts
    _pure_keys: dict[int, bool] = field(
        default_factory=dict, init=False
    )  # whether a dict or a set may be looked into again, by id of its node

    def length(self, node: Node, site: Any) -> VaryingLength | None:
        """``len`` of a container from outside; after a write the result still depends on the entry content. A length that is
        known to vary is not guarded, but given back."""
        source = self.sources.make("len", node.source, None)
        if node.snapshot is not None:
            entry = node.snapshot.content
            if entry is None:
                return None
            grown = len(node.obj) - len(entry)
            pairs = zip(entry, node.obj, strict=False)
            only_appended = type(node.obj) is list and grown >= 0 and all(a is b for a, b in pairs)
            if only_appended and source.path in self.ledger.learned.numbers:
                self.sizes_of_writes(node, site)
                return VaryingLength(source, len(entry), grown)
            self.refgraph.read(source, guard.EQUAL, len(entry), site)
            self.sizes_of_writes(node, site)
            return None
        size = natives.length(node.obj)
        if source.path in self.ledger.learned.numbers:
            return VaryingLength(source, size, 0)
        self.refgraph.read(source, guard.EQUAL, size, site)
        return None

    def sizes_of_writes(self, node: Node, site: Any) -> None:
        """What was written has made a container longer or shorter only where the key or element was not there, or was."""
        if node.kind == kinds.SET:
            self.whole(node, site)
        elif node.kind == kinds.DICT:
            assert node.snapshot is not None
            for key in [key for op, key in node.forced if op.endswith("_item")]:
                source = self.item_source(node, key, "dict_item")
                entry = node.snapshot.entry(key)
                if entry is not ABSENT:
                    self.refgraph.read(source, guard.TYPE, type(entry), site)
                else:
                    self.refgraph.read(source, guard.ABSENT, None, site)

    def type_of(self, obj: Any, site: Any) -> None:
        node = self.refgraph.node(obj)
        if node is not None and node.kind not in (kinds.TENSOR, kinds.IDENTITY):
            self.refgraph.read(node.source, guard.TYPE, type(obj), site)

    def can_probe_unobserved(self, node: Node, site: Any, key: Any = "") -> bool:
        """Whether a dict or a set may be looked into for ``key`` once more than the program does; refuses where not."""
        if node.kind not in (kinds.DICT, kinds.SET):
            return True
        if id(node) not in self._pure_keys:
            self._pure_keys[id(node)] = hashing.quiet_keys(node.obj)
        if self._pure_keys[id(node)] and hashing.quiet(key):
            return True
        impure = next((k for k in (key, *natives.keys(node.obj)) if not hashing.quiet(k)), key)
        self.journal.refuse(
            "MP111",
            f"{HERE} looks into {a_type(node.obj)} with a key whose `__hash__` or `__eq__` is user code ({a_type(impure)}), "
            "which a guard would run more often than the program does.",
            hint="Use plain values, tuples of them or members of an Enum as keys.",
            site=site,
        )
        return False

    def identified(self, site: Any, fixed: bool, *values: Any, depth: int = 3) -> None:
        """Objects and tensors from outside are compared or hashed: by what they are, wherever their class says nothing else.

        ``fixed``: with those that a set from outside holds, so each must stay the same one; among themselves it counts only
        which of them are one.
        """
        for value in values:
            kind = kinds.kind_of(value)
            if depth and (kind in _HELD or is_a(value, _KEYS)):
                self.identified(site, fixed, *natives.elements(value), depth=depth - 1)
            if kind == kinds.OBJECT:
                self.facts.classes.special_methods(value, site)
            if kind not in _BY_IDENTITY or (node := self.refgraph.node(value)) is None:
                continue
            if fixed and kind != kinds.TUPLE:
                self.refgraph.read(node.source, guard.IDENTITY, value, site)
            else:
                node.addressed = True

    def whole(self, node: Node, site: Any, values: bool = True, *, carry: bool = False) -> None:
        """The whole (entry) content of an external container is read: length, order, keys and elements.

        ``carry``: the elements reach the program one by one (iteration, unpacking, a copy), so numbers among them may be
        symbolic; otherwise native code reads them, and their exact values count.
        """
        obj = node.obj
        if not self.can_probe_unobserved(node, site):
            return
        content = node.snapshot.content if node.snapshot is not None else None
        if node.contents_read and values:
            if not carry:
                self.numbers.escape_all(site, obj if content is None else content)
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
                    self.facts.values.read(self.sources.make("key_at", node.source, i), k, site)
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
            self.journal.refuse(
                "MP111", f"{HERE} reads {a_type(obj)} with {len(pairs)} elements in full: too many to guard.", site=site
            )
            return
        for k, v, how in pairs:
            self.facts.values.read(
                self.item_source(node, k, how), v, site, self.facts.values.item_slot(node, k), exact=not carry
            )

    def item_source(self, node: Node, key: Any, how: str) -> Source:
        """Source of one element; a key that is itself an object from outside is part of the path."""
        key = kinds.plain_key(key)
        if kinds.kind_of(key) != kinds.SCALAR:
            key_node = self.refgraph.node(key) if kinds.kind_of(key) != kinds.IDENTITY else None
            place = self.sources.const(key, kinds.bounded_repr(key)) if key_node is None else key_node.source
            return self.sources.make(how, node.source, place)
        return self.sources.make(how, node.source, key)

    def whole_again(self, node: Node) -> None:
        node.contents_read = False
        self.whole(node, None)
