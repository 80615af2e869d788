"""ContainerEvents: methods of built-in containers, and what native code may read of the containers among its arguments."""

from __future__ import annotations

import operator
import types
from typing import Any

from magpy_core.findings import HERE
from magpy_core.guards import kinds as guard
from magpy_core.monitor import policy
from magpy_core.recording.base import Output
from magpy_core.recording.callees import GETTERS
from magpy_core.recording.wording import a_type
from magpy_core.recording.writes import WriteEvents
from magpy_core.refgraph import kinds, natives
from magpy_core.refgraph.fields import ABSENT
from magpy_core.refgraph.graph import Node
from magpy_core.refgraph.iterators import can_peek, peek, underlying
from magpy_core.refgraph.kinds import is_a

_PAIRS: tuple[type, ...] = (type({}.items()), type(iter({}.items())), zip, enumerate)
_ASKING = (getattr, hasattr, vars, dir)  # what these read is seen where Python calls them
# Methods that look at no other container that they are given; all others may.
_LOOKS_AT_NONE = frozenset({
    "append", "appendleft", "add", "discard", "insert", "setdefault", "get", "pop", "popleft", "popitem", "clear", "copy",
    "items", "values", "keys", "reverse", "rotate", "move_to_end", "sort", "__setitem__", "__getitem__", "__delitem__",
    "__copy__", "__iter__", "__len__", "__reversed__", "__mul__", "__rmul__", "__imul__", "__sizeof__",
})  # fmt: skip


# Methods that pass elements on by identity and look at none of them.
_STORING = frozenset({
    "append", "add", "extend", "appendleft", "extendleft", "update", "setdefault", "insert", "__setitem__", "__iadd__",
    "__ior__",
})  # fmt: skip
_HANDING = _STORING | {
    "pop", "popleft", "popitem", "copy", "__copy__", "clear", "items", "values", "keys", "get", "__getitem__", "__iter__",
    "__reversed__", "__len__", "reverse", "rotate", "move_to_end", "__add__", "__mul__", "__rmul__", "__init__",
}  # fmt: skip
_TAKING = frozenset({"extend", "extendleft", "__iadd__"})  # they look at what they are given, and not into its elements
_KEYED = frozenset({"get", "setdefault", "pop", "__getitem__", "__setitem__", "__delitem__", "__contains__"})
_ORDERED = (kinds.LIST, kinds.TUPLE, kinds.DEQUE, kinds.DICT)


_COMPARING = frozenset(
    {"index", "count", "remove", "__contains__", "__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__"}
)


class ContainerEvents(WriteEvents):
    """Reads and writes that reach a container through a call."""

    def state_read(self, obj: Any, site: Any) -> None:
        raise NotImplementedError

    def escape_from_method(self, site: Any, obj: Any, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Numbers that vary stay symbolic where the method only hands them over."""
        if name not in _HANDING:
            self.escape_all(site, obj, args, kwargs)
        elif name not in _STORING:
            self.escape_all(site, args, kwargs)
        elif name in ("insert", "setdefault", "__setitem__", "add"):
            self.escape_all(site, args[:1])

    def container_method(self, site: Any, obj: Any, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        node = self.node_for(obj)
        kind = kinds.kind_of(obj)
        if self.scalars and not (args and name in _KEYED and self.keyed_by_address(obj, args[0])):
            self.escape_from_method(site, obj, name, args, kwargs)
        for a in args:
            if kinds.kind_of(a) == kinds.OBJECT:
                self.operator_facts(a, site)
        if name not in _LOOKS_AT_NONE:
            depth = 0 if name in _TAKING or all(is_a(a, dict) for a in args) else 1
            self.read_deep(site, args, kwargs, shallow=depth, carry=name in _HANDING and kind in _ORDERED)
        if kind == kinds.SET or (kind == kinds.DICT and (name == "move_to_end" or (node is None and name in _KEYED))):
            self.identified(site, node is not None, *(args if kind == kinds.SET else args[:1]))
        if node is None:
            if name in _COMPARING:
                self.identified(site, False, obj, *args)
            return
        if node.kind == kinds.DICT and name in policy.KEYED_READS and args:
            self.read_dict_key(node, args[0], site)
            return
        if name == "__len__":
            self.read_len(node, site)
            return
        if name in _COMPARING:  # with each element, whatever is in it
            self.read_deep(site, (obj, *args), {})
        if node.kind == kinds.DICT and name in ("setdefault", "pop") and args:
            self.read_dict_key(node, args[0], site)
            if name == "pop":
                node.forced.append(("del_item", args[0]))
            self.refgraph.snapshot(node)
            self.mark_written(node, site)
            return
        if name in policy.READ_METHODS:
            keys_only = node.kind == kinds.DICT and name in ("keys", "__iter__")
            self.contents(node, site, values=not keys_only, carry=name in _HANDING)
            return
        self.refgraph.snapshot(node)
        self.mark_written(node, site)
        if not self.blind_write(node, name, args, kwargs):
            self.contents(node, site)

    def blind_write(self, node: Node, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        """A write whose effect does not depend on what was there: note what it sets. False for every other mutator."""
        if node.kind == kinds.DEQUE and node.obj.maxlen is not None:
            if name == "append":
                node.forced.append(("append", args[0]))
            elif name in ("extend", "__iadd__") and is_a(args[0], (list, tuple)):
                node.forced.extend(("append", v) for v in args[0])
            else:
                node.forced.append((name, None))
                return False
            return True
        if node.kind in (kinds.LIST, kinds.DEQUE) and name in ("append", "extend", "__iadd__"):
            return True
        if name == "clear":
            node.forced.append(("clear", None))
            return True
        if node.kind == kinds.SET and name == "update" and all(is_a(a, (set, frozenset)) for a in args):
            node.forced.extend(("add", v) for a in args for v in a)
            return True
        if node.kind == kinds.SET and name in ("add", "discard"):
            node.forced.append((name, args[0]))
            return True
        if node.kind == kinds.DICT and name == "__setitem__":
            node.forced.append(("set_item", args[0]))
            return True
        if node.kind == kinds.DICT and name == "update" and all(is_a(a, dict) for a in args):
            for keys in (*args, kwargs):
                node.forced.extend(("set_item", k) for k in keys)
            return True
        return False

    def read_len(self, node: Node, site: Any) -> None:
        """``len`` of a container from outside; after a write the result still depends on the entry content."""
        source = self.sources.make("len", node.source, None)
        if node.snapshot is not None:
            entry = node.snapshot.content
            if entry is None:
                return
            grown = len(node.obj) - len(entry)
            pairs = zip(entry, node.obj, strict=False)
            only_appended = type(node.obj) is list and grown >= 0 and all(a is b for a, b in pairs)
            if only_appended and source.path in self.learned.numbers:
                self.pending_len = (source, len(entry), grown)
            else:
                self.refgraph.read(source, guard.EQUAL, len(entry), site)
            self.sizes_of_writes(node, site)
            return
        size = natives.length(node.obj)
        if source.path in self.learned.numbers:
            self.pending_len = (source, size, 0)
            return
        self.refgraph.read(source, guard.EQUAL, size, site)

    def sizes_of_writes(self, node: Node, site: Any) -> None:
        """What was written has made a container longer or shorter only where the key or element was not there, or was."""
        if node.kind == kinds.SET:
            self.contents(node, site)
        elif node.kind == kinds.DICT:
            assert node.snapshot is not None
            for key in [key for op, key in node.forced if op.endswith("_item")]:
                source = self.item_source(node, key, "dict_item")
                entry = node.snapshot.entry(key)
                if entry is not ABSENT:
                    self.refgraph.read(source, guard.TYPE, type(entry), site)
                else:
                    self.refgraph.read(source, guard.ABSENT, None, site)

    pending_len: tuple[Any, int, int] | None = None  # its source, length at entry, what the region appended

    # -- reading arguments -------------------------------------------------------------------------------------

    def read_deep(self, site: Any, args: Any, kwargs: Any, shallow: int | None = None, *, carry: bool = False) -> None:
        """Native code may read the containers from outside among its arguments: guard their content. ``shallow``: how many
        levels down it looks, if not all the way."""
        nodes = self.refgraph.nodes
        seen: set[int] = set()
        if not shallow and site is not self.handed_on:
            self.getters_handed(args, kwargs, site)
        if carry:
            self.identified(site, False, *args)
        stack = [(a, 0) for a in (*args, *kwargs.values())]
        budget = 50_000
        while stack:
            v, depth = stack.pop()
            kind = kinds.kind_of(v)
            if kind not in kinds.CONTAINERS or id(v) in seen:
                self.memory_read(site, v)
                self.identified(site, False, v)
                if kind == kinds.OBJECT:
                    self.operator_facts(v, site)
                    if is_a(v, types.SimpleNamespace) and id(v) not in seen:
                        seen.add(id(v))
                        self.state_read(v, site)
                        self.escape_all(site, vars(v))
                        stack.extend((x, depth + 1) for x in vars(v).values())
                elif type(v) is types.FunctionType and id(v) in nodes:
                    self.function_fact(v)
                elif kind == kinds.OPAQUE and id(v) in nodes and hasattr(type(v), "__next__"):
                    self.read_iterator(v, site)
                continue
            seen.add(id(v))
            node = nodes.get(id(v))
            if node is not None:
                node.addressed |= kind == kinds.TUPLE
                self.contents(node, site, carry=carry)
            budget -= natives.length(v)
            if budget < 0:
                self.refuse(
                    "MP111", f"{HERE} passes a very large container to native code: too many elements for guards.", site=site
                )
                return
            if shallow is not None and depth >= shallow:
                continue
            stack.extend((x, depth + 1) for x in (natives.values(v) if is_a(v, dict) else natives.elements(v)))

    def getters_handed(self, args: Any, kwargs: dict[str, Any], site: Any) -> None:
        """Native code (``sorted``, ``map``) may be handed an ``operator.attrgetter`` or the like: what that reads of the
        elements is guarded here."""
        for v in (*args, *kwargs.values()):
            if is_a(v, GETTERS) or any(v is asking for asking in _ASKING):
                self.getter_handed(v, [a for a in args if a is not v], site)

    def getter_handed(self, getter: Any, args: list[Any], site: Any) -> None:
        if is_a(getter, operator.itemgetter):  # the pairs these give are made by them, of what was read before
            args = [a for a in args if type(a) not in _PAIRS]
            if not args:
                return
        lists = [a for a in args if type(a) in (list, tuple)]
        if not is_a(getter, GETTERS) or not lists or len(lists) < len(args):
            name = getattr(getter, "__name__", type(getter).__name__)
            self.refuse(
                "MP104", f"{HERE} hands `{name}` to native code, where no guard sees what it reads.",
                hint="Use a lambda: what it reads is seen.", site=site,
            )  # fmt: skip
            return
        for value in (v for a in lists for v in a):
            self.call_getter(site, getter, (value,))

    def call_getter(self, site: Any, fn: Any, args: tuple[Any, ...]) -> None:
        raise NotImplementedError

    handed_on: Any = None  # the site of the last native call whose callbacks have been looked at

    def read_iterator(self, obj: Any, site: Any) -> None:
        node = self.refgraph.node(obj)
        if node is not None:
            self.refuse(
                "MP108",
                f"{HERE} advances {a_type(obj)} from outside the region: its position can't be guarded or repeated.",
                hint="Take the next item outside the region and pass it in.",
                site=site,
            )

    def advance(self, obj: Any, site: Any) -> None:
        """``next(obj)``: an iterator from outside gives the value that looking into it tells, and replay advances it too."""
        node = self.refgraph.node(obj)
        if node is None or not can_peek(obj):
            self.read_iterator(obj, site)
            return
        under = self.refgraph.node(underlying(obj))
        if under is not None and under.snapshot is not None:
            self.refuse(
                "MP108",
                f"{HERE} goes on through a list that the region has changed.",
                site=site,
            )
            return
        index = self.advanced.get(id(obj), 0)
        try:
            peek(obj, 0)
        except IndexError:
            self.refuse(
                "MP108",
                f"{HERE} finds {a_type(obj)} from outside at its end.",
                site=site,
            )
            return
        self.advanced[id(obj)] = index + 1
        self.outputs.append(Output("advance", (obj, node.source.describe()), site))
        self.places.remember(None, site)
        self.pending_call = (site, "next", (self.sources.make("peek", node.source, index),))

    def read_type(self, obj: Any, site: Any) -> None:
        node = self.refgraph.node(obj)
        if node is not None and node.kind not in (kinds.TENSOR, kinds.IDENTITY):
            self.refgraph.read(node.source, guard.TYPE, type(obj), site)
