"""Values: a value that was read from outside is guarded, or carried as a symbol if it is dynamic.

Key type: Values.
"""

from __future__ import annotations

import weakref
from enum import Enum, auto
from typing import Any

from magpy_core._compat.cpython.layout import native_state
from magpy_core.findings import HERE
from magpy_core.guards import kinds as guard
from magpy_core.knowledge.objects import NATIVE_FIELDS
from magpy_core.monitor.events import MaybeSite
from magpy_core.recording.dynamic import assume_momentum, assume_number
from magpy_core.recording.facts.slot import Slot
from magpy_core.recording.tracker import Tracker
from magpy_core.refgraph import hashing, kinds
from magpy_core.refgraph.arrays import is_array
from magpy_core.refgraph.fields import instance_dict, swap_entry
from magpy_core.refgraph.iterators import is_iterator
from magpy_core.refgraph.kinds import is_a
from magpy_core.refgraph.node import Node
from magpy_core.refgraph.source import Source
from magpy_core.refgraph.stand_in import TARGET, StandIn, target_of


class _Use(Enum):
    """What becomes of a scalar that is read."""

    PROGRAM = auto()  # the program gets it, so a copy can carry the symbol of a dynamic number
    EXACT = auto()  # native code needs its exact value
    FIXED = auto()  # no copy can take its place


class Values(Tracker):
    """Guards values by their kind."""

    def read(
        self, source: Source, value: Any, site: MaybeSite, store: Slot | None = None, *, to_program: bool = False,
        exact: bool = False,
    ) -> Any:  # fmt: skip
        """Guard ``value``, which was read from outside at ``source``. Returns it, or a private copy that carries a symbol.

        A number is carried as a symbol only if the program gets the copy: through ``store``, or from the caller. ``exact``:
        native code reads the number and needs its exact value.
        """
        tp = value if is_a(value, type) else type(value)
        if kinds.is_heap_type(tp):
            self.context.classes.class_used(tp, site)
        kind = kinds.kind_of(value)
        if kind == kinds.SCALAR:
            use = _Use.EXACT if exact else _Use.PROGRAM if to_program or store is not None else _Use.FIXED
            return self._scalar(source, value, site, store, use)
        if kind == kinds.IDENTITY:
            self._identity(source, value, site)
            return value
        if store is not None and (type(value) is tuple or kinds.is_named_tuple(type(value))):
            assume_momentum(self.ledger, source, value, self.sources.item(source, 0))
            if self.ledger.learned.numbers:
                value = self._with_symbols(source, value, store, site)
        node = self.refgraph.nodes.get(id(value))
        if node is None:
            self._new_object(source, value, kind, site)
        elif node.source is not source:
            self.refgraph.read(source, guard.SAME_AS, node.source, site)
        return value

    def _scalar(self, source: Source, value: Any, site: MaybeSite, store: Slot | None, use: _Use) -> Any:
        if use is _Use.PROGRAM:
            assume_number(self.ledger, source, value, site)
        equals_itself = value == value
        # containers find a NaN only by identity, so the program keeps the original
        if equals_itself and type(value) in kinds.NUMBER_TYPES and source.path in self.ledger.learned.numbers:
            return self._dynamic_number(source, value, site, store, use)
        if self.refgraph.read(source, guard.EQUAL if equals_itself else guard.IS, value, site):
            self.journal.places.remember(source, site)
        return value

    def _dynamic_number(self, source: Source, value: Any, site: MaybeSite, store: Slot | None, use: _Use) -> Any:
        scalars = self.ledger.scalars
        sym = scalars.get(value)
        if sym is not None:
            if use is _Use.EXACT:
                self.context.numbers.escape(sym, site)
            return value
        if use is not _Use.PROGRAM:
            self.ledger.learned.exact.add(source.path)
            self.refgraph.read(source, guard.EQUAL, value, site)
            return value
        self.refgraph.read(source, guard.TYPE, type(value), site)
        if store is not None and store.get() is not value:
            return value  # the region has written another value there, which must stay
        copy = scalars.bind(value, scalars.source(source, value))
        if store is not None:
            store.swap(value, copy)
            self.ledger.undo.append(lambda: store.swap(copy, value))
        return copy

    def _identity(self, source: Source, value: Any, site: MaybeSite) -> None:
        self.refgraph.read(source, guard.IS, value, site)
        if id(value) not in self.refgraph.nodes:
            self.refgraph.add(value, self.sources.const(value, source.describe()))
            if is_a(value, kinds.REFERRING):
                self.context.classes.identity_read(value, site)

    def _new_object(self, source: Source, value: Any, kind: int, site: MaybeSite) -> None:
        """Guard what decides which object it is to the program; what it contains is guarded where it is read."""
        if kind == kinds.TENSOR:
            self.refgraph.read(source, guard.TENSOR, type(value), site)
        elif source.kind != "const":
            self.refgraph.read(source, guard.TYPE, type(value), site)
        if kind == kinds.OPAQUE and not (is_array(value) or is_iterator(value)):  # of those, what is used is guarded
            self.refgraph.read(source, guard.IS, value, site)
            if type(value) in weakref.ProxyTypes:
                text = f"{HERE} reads a weak proxy, whose object has no source."
                hint = "Pass in the object that it refers to."
                self.journal.refuse("MP111", text, hint=hint, site=site)
        elif kind == kinds.OBJECT:
            self.native_facts(source, value, site)
        self.refgraph.add(value, source)

    def behind(self, obj: StandIn, site: MaybeSite) -> Any:
        """What ``obj`` stands for, as a value that was read."""
        target = target_of(obj)
        self.read(self.sources.make("field", self.context.roots.const_root(obj).source, TARGET), target, site)
        return target

    def _with_symbols(self, source: Source, value: tuple[Any, ...], store: Slot, site: MaybeSite) -> tuple[Any, ...]:
        """``value``, or a private copy of it in which dynamic numbers carry symbols: nothing can be stored in a tuple."""
        learned, scalars = self.ledger.learned.numbers, self.ledger.scalars
        elements = list(tuple.__iter__(value))
        sources = [self.sources.item(source, i) for i in range(len(elements))]
        if (
            id(value) in self.refgraph.nodes
            or store.get() is not value
            or not any(
                one.path in learned and type(element) in kinds.NUMBER_TYPES and scalars.get(element) is None
                for one, element in zip(sources, elements, strict=True)
            )
        ):
            return value
        copy: tuple[Any, ...] = tuple.__new__(
            type(value),
            [
                self.read(one, element, site, to_program=True) if one.path in learned else element
                for one, element in zip(sources, elements, strict=True)
            ],
        )
        self.refgraph.private.add(id(copy))
        store.swap(value, copy)
        self.ledger.undo.append(lambda: store.swap(copy, value))
        return copy

    def written_over(self, node: Node, key: Any) -> bool:
        """Whether the region has written this slot, even with the same value, so that a private copy must not be stored."""
        handles = [node, self.refgraph.node(instance_dict(node.obj)) if node.kind == kinds.OBJECT else None]
        if node.source.kind == "dict":
            handles += [n for n in self.refgraph.written() if n.source is node.source.base]
        return any(hashing.same_key(k, key) for n in handles if n for _, k in n.forced)

    def attr_slot(self, node: Node, name: str) -> Slot | None:
        d = instance_dict(node.obj)
        if d is None or self.written_over(node, name):
            return None

        def swap(old: Any, new: Any) -> None:
            if node.snapshot is not None and node.snapshot.attrs is not None:
                swap_entry(node.snapshot.attrs, name, old, new)
            swap_entry(d, name, old, new)

        return Slot(lambda: d.get(name), swap)

    def item_slot(self, node: Node, key: Any) -> Slot | None:
        if node.kind not in (kinds.LIST, kinds.DICT):
            return None
        obj, key = node.obj, kinds.plain_key(key)
        base: Any = list if node.kind == kinds.LIST else dict
        if self.written_over(node, key):
            return None

        def get() -> Any:
            if base is dict:
                return dict.get(obj, key)
            return list.__getitem__(obj, key) if -len(obj) <= key < len(obj) else None

        def swap(old: Any, new: Any) -> None:
            if node.snapshot is not None and base is dict:
                before = node.snapshot.content
                node.snapshot.content = [(k, new if e is old and hashing.same_key(k, key) else e) for k, e in before]
            elif node.snapshot is not None:
                swap_entry(node.snapshot.content, key, old, new)
            if type(obj) is base:
                swap_entry(obj, key, old, new)
            elif get() is old:
                base.__setitem__(obj, key, new)

        return Slot(get, swap)

    def native_facts(self, source: Source, value: Any, site: MaybeSite) -> None:
        """Guard an object with C state, which native code may read unobserved: an instance of a subclass of ``int`` or
        ``str``, a ``re.Match``. It is guarded by identity, unless all its state is in fields."""
        native = native_state(type(value))
        if native is None:
            return
        fields = NATIVE_FIELDS.get(type(value))
        if fields is None:
            self.refgraph.read(source, guard.IS, value, site)
            fields = ("args",) if issubclass(native, BaseException) else ()
        for name in fields:
            part = getattr(value, name)
            self.read(self.sources.make("field", source, name), part, site, exact=True)
            if kinds.kind_of(part) in (kinds.TUPLE, kinds.DICT) and (node := self.refgraph.node(part)) is not None:
                self.context.contents.read_all(node, site)
