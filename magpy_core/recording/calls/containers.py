"""ContainerCalls: methods of builtin containers and iterators. Key type: ContainerCalls."""

from __future__ import annotations

from typing import Any

from magpy_core.findings import HERE
from magpy_core.guards import kinds as guard
from magpy_core.knowledge.methods import NumberUse, container_method
from magpy_core.recording.tracker import Tracker
from magpy_core.recording.wording import a_type
from magpy_core.refgraph import kinds
from magpy_core.refgraph.fields import ABSENT
from magpy_core.refgraph.kinds import is_a

_ORDERED = (kinds.LIST, kinds.TUPLE, kinds.DEQUE, kinds.DICT)


class ContainerCalls(Tracker):
    """Calls of container methods."""

    def escape_from_method(
        self, site: Any, obj: Any, numbers: NumberUse, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> None:
        """Dynamic numbers escape, except those that the method only moves."""
        used = {
            NumberUse.ESCAPE: (obj, args, kwargs),
            NumberUse.KEEP: (args, kwargs),
            NumberUse.STORE: (),
            NumberUse.STORE_BY_KEY: args[:1],
        }
        self.basics.numbers.escape_all(site, *used[numbers])

    def method(self, site: Any, obj: Any, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        known = container_method(name)
        if known.writes:
            self.access.writes.count_write(obj)
        node = self.facts.roots.node_for(obj)
        kind = kinds.kind_of(obj)
        if self.ledger.scalars:
            self.escape_from_method(site, obj, known.numbers, args, kwargs)
        for a in args:
            if kinds.kind_of(a) == kinds.OBJECT:
                self.facts.classes.special_methods(a, site)
        if known.levels is not None:
            depth = 0 if all(is_a(a, dict) for a in args) else known.levels
            self.access.arguments.read(site, args, kwargs, shallow=depth, carry=known.moves_elements and kind in _ORDERED)
        if kind == kinds.SET or (kind == kinds.DICT and (name == "move_to_end" or (node is None and known.by_key))):
            self.facts.contents.compared_or_hashed(site, node is not None, *(args if kind == kinds.SET else args[:1]))
        if node is None:
            if known.compares:
                self.facts.contents.compared_or_hashed(site, False, obj, *args)
            return
        if node.kind == kinds.DICT and known.looks_up and args:
            self.access.items.dict_key(node, args[0], site)
            return
        if name == "__len__":
            varying = self.facts.contents.length(node, site)
            if varying is not None:
                self.ledger.learned.exact.add(varying.source.path)
                self.refgraph.read(varying.source, guard.EQUAL, varying.at_entry, site)
            return
        if known.compares:  # comparisons with elements may read anything in them
            self.access.arguments.read(site, (obj, *args), {})
        if node.kind == kinds.DICT and name in ("setdefault", "pop") and args:
            self.access.items.dict_key(node, args[0], site)
            if name == "pop":
                node.forced.append(("del_item", args[0]))
                node.note_write(args[0], ABSENT)
            self.refgraph.snapshot(node)
            self.access.writes.mark_written(node, site)
            return
        if known.reads:
            keys_only = node.kind == kinds.DICT and name in ("keys", "__iter__")
            self.facts.contents.read_all(node, site, values=not keys_only, carry=known.moves_elements)
            return
        self.refgraph.snapshot(node)
        self.access.writes.mark_written(node, site)
        if not self.access.writes.blind_write(node, name, args, kwargs):
            self.facts.contents.read_all(node, site)

    def read_iterator(self, obj: Any, site: Any) -> None:
        node = self.refgraph.node(obj)
        if node is not None:
            self.journal.refuse(
                "MP108",
                f"{HERE} advances {a_type(obj)} that existed before the region: its position can't be guarded or replayed.",
                hint="Take the next item outside the region and pass it in.",
                site=site,
            )
