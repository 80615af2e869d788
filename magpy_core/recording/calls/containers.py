"""ContainerCalls: methods of builtin containers and iterators. Key type: ContainerCalls."""

from __future__ import annotations

from typing import Any

from magpy_core.findings import HERE
from magpy_core.guards import kinds as guard
from magpy_core.knowledge.methods import Method, NumberUse, container_method
from magpy_core.monitor.events import MaybeSite
from magpy_core.recording.tracker import Tracker
from magpy_core.recording.wording import a_type
from magpy_core.refgraph import kinds
from magpy_core.refgraph.fields import ABSENT
from magpy_core.refgraph.kinds import is_a
from magpy_core.refgraph.node import Node

_ORDERED = (kinds.LIST, kinds.TUPLE, kinds.DEQUE, kinds.DICT)


class ContainerCalls(Tracker):
    """Calls of container methods."""

    def escape_from_method(
        self, site: MaybeSite, obj: Any, numbers: NumberUse, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> None:
        """Dynamic numbers escape, except those that the method only moves."""
        used = {
            NumberUse.ESCAPE: (obj, args, kwargs),
            NumberUse.KEEP: (args, kwargs),
            NumberUse.STORE: (),
            NumberUse.STORE_BY_KEY: args[:1],
        }
        self.context.numbers.escape_all(site, *used[numbers])

    def method(self, site: MaybeSite, obj: Any, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        known = container_method(name)
        if known.writes:
            self.context.writes.count_write(obj)
        node = self.context.roots.node_for(obj)
        self._arguments(site, obj, known, args, kwargs)
        if name == "__setitem__" and len(args) == 2:
            self.context.writes.slice_stored(site, obj, *args)
        self._keys(site, obj, name, known, args, from_outside=node is not None)
        if node is not None:
            self._of_outside(site, node, name, known, args, kwargs)
        elif known.compares:
            self.context.contents.compared_or_hashed(site, False, obj, *args)

    def _arguments(self, site: MaybeSite, obj: Any, known: Method, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """What the method reads in its arguments."""
        if self.ledger.scalars:
            self.escape_from_method(site, obj, known.numbers, args, kwargs)
        for a in args:
            if kinds.kind_of(a) == kinds.OBJECT:
                self.context.classes.special_methods(a, site)
        if known.levels is not None:
            depth = 0 if all(is_a(a, dict) for a in args) else known.levels
            carry = known.moves_elements and kinds.kind_of(obj) in _ORDERED
            self.context.arguments.read(site, args, kwargs, shallow=depth, carry=carry)

    def _keys(
        self, site: MaybeSite, obj: Any, name: str, known: Method, args: tuple[Any, ...], *, from_outside: bool
    ) -> None:
        """What the method hashes. The keys of a dict from outside are read with it."""
        kind = kinds.kind_of(obj)
        if kind == kinds.SET:
            self.context.contents.compared_or_hashed(site, from_outside, *args)
        elif kind == kinds.DICT and (name == "move_to_end" or (known.by_key and not from_outside)):
            self.context.contents.compared_or_hashed(site, from_outside, *args[:1])

    def _of_outside(
        self, site: MaybeSite, node: Node, name: str, known: Method, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> None:
        """What the method reads and writes in a container from outside."""
        if node.kind == kinds.DICT and known.looks_up and args:
            self.context.items.dict_key(node, args[0], site)
            return
        if name == "__len__":
            self._length(site, node)
            return
        if known.compares:  # comparisons with elements may read anything in them
            self.context.arguments.read(site, (node.obj, *args), {})
        if node.kind == kinds.DICT and name in ("setdefault", "pop") and args:
            self._key_written(site, node, name, args[0])
        elif known.reads:
            keys_only = node.kind == kinds.DICT and name in ("keys", "__iter__")
            self.context.contents.read_all(node, site, values=not keys_only, carry=known.moves_elements)
        else:
            self.refgraph.snapshot(node)
            self.context.writes.mark_written(node, site)
            if not self.context.writes.blind_write(node, name, args, kwargs):
                self.context.contents.read_all(node, site)

    def _length(self, site: MaybeSite, node: Node) -> None:
        """``c.__len__()``: events don't show its result, so that it can't carry a symbol."""
        varying = self.context.contents.length(node, site)
        if varying is not None:
            self.ledger.learned.exact.add(varying.source.path)
            self.refgraph.read(varying.source, guard.EQUAL, varying.at_entry, site)

    def _key_written(self, site: MaybeSite, node: Node, name: str, key: Any) -> None:
        """``d.pop(key)``, ``d.setdefault(key, value)``: whether the key was there decides what happens."""
        self.context.items.dict_key(node, key, site)
        if name == "pop":
            node.forced.append(("del_item", key))
            node.note_write(key, ABSENT)
        self.refgraph.snapshot(node)
        self.context.writes.mark_written(node, site)

    def read_iterator(self, obj: Any, site: MaybeSite) -> None:
        node = self.refgraph.node(obj)
        if node is not None:
            self.journal.refuse(
                "MP108",
                f"{HERE} advances {a_type(obj)} that existed before the region: MagPy can't check or restore its position.",
                hint="Take the next item outside the region and pass it in.",
                site=site,
            )
