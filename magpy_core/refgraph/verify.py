"""The verifier of reference graphs: does a recording's graph describe the state the region was entered with?

It rebuilds that state from the snapshots and checks every node and every read against it, at the end of a recording. Off by
default, on in tests (``MAGPY_VERIFY=1``). Key function: ``verify``; key type: RefGraphError.
"""

from __future__ import annotations

import os
import types
from collections.abc import Callable
from typing import Any

from magpy_core._compat.torch.tensor_guards import no_torch_function
from magpy_core.refgraph import kinds, natives
from magpy_core.refgraph.fields import ABSENT, UNKNOWN, instance_dict
from magpy_core.refgraph.graph import Node, Read, RefGraph
from magpy_core.refgraph.guard_kind import GuardKind
from magpy_core.refgraph.kinds import is_a
from magpy_core.refgraph.source import Source
from magpy_core.refgraph.source_kinds import Root

_BY_VALUE = (kinds.SCALAR, kinds.IDENTITY)


class RefGraphError(AssertionError):
    """A reference graph that contradicts the state it was recorded from; ``problems`` are sentences."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__("the reference graph is wrong:\n" + "\n".join(f"  {p}" for p in problems))
        self.problems = problems


def enabled() -> bool:
    """Whether recordings verify their graph (environment variable ``MAGPY_VERIFY``)."""
    return os.environ.get("MAGPY_VERIFY", "") not in ("", "0")


def verify(
    graph: RefGraph,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    is_young: Callable[[Any], bool | None] = lambda obj: None,
) -> None:
    """Raise RefGraphError unless ``graph`` holds for a region entered with ``args`` and ``kwargs``.

    ``is_young(obj)`` tells whether the region made an object: such an object is internal and must have no node.
    """
    problems: list[str] = []
    entry = Entry(graph, args, kwargs)
    with no_torch_function():
        for key, node in graph.nodes.items():
            problems += _node_problems(entry, key, node, is_young)
        for read in graph.reads:
            problems += _read_problems(entry, read)
    if problems:
        raise RefGraphError(problems)


class Entry:
    """Values as they were when the region was entered: snapshots where there are some, the objects themselves elsewhere."""

    def __init__(self, graph: RefGraph, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.graph, self.args, self.kwargs = graph, args, kwargs
        self._values: dict[int, Any] = {}

    def value(self, source: Source) -> Any:
        """The entry value of ``source``, ``ABSENT``, or ``UNKNOWN``."""
        found = self._values.get(id(source), self)
        if found is self:
            found = self._values[id(source)] = self._value(source)
        return found

    def is_one_object(self, value: Any, source: Source) -> bool | None:
        """Whether ``value`` is the object at ``source``; None where the snapshots can't tell."""
        other = self.value(source)
        return None if other is UNKNOWN else value is other

    def _value(self, source: Source) -> Any:
        if source.base is None:
            try:
                return source.evaluate(self.args, self.kwargs)
            except LookupError:
                return ABSENT
        base = self.value(source.base)
        if base is ABSENT or base is UNKNOWN:
            return base
        key = self.value(source.key) if isinstance(source.key, Source) else source.key
        return UNKNOWN if key is UNKNOWN else source.step_kind.at_entry(self, source, base, key)

    def attrs(self, obj: Any) -> dict[str, Any]:
        """An object's own ``__dict__`` at entry."""
        node = self.graph.node(obj)
        if node is not None and node.snapshot is not None and node.snapshot.attrs is not None:
            return node.snapshot.attrs
        if is_a(obj, type):
            return dict(obj.__dict__)
        if is_a(obj, types.ModuleType):
            return dict(self.pairs(obj.__dict__))
        if is_a(obj, types.FunctionType):
            return dict(self.pairs(obj.__dict__))
        return instance_dict(obj) or {}

    def pairs(self, obj: Any) -> list[tuple[Any, Any]]:
        node = self.graph.node(obj)
        if node is not None and node.snapshot is not None:
            return list(node.snapshot.content)
        return natives.entries(obj)

    def elements(self, obj: Any) -> Any:
        """The content of a sequence or set."""
        node = self.graph.node(obj)
        content = node.snapshot.content if node is not None and node.snapshot is not None else None
        if node is not None and node.snapshot is not None and node.kind == kinds.SET:
            return list(node.snapshot.order)
        return list(natives.elements(obj)) if content is None else content  # a tuple's snapshot holds none

    def item(self, obj: Any, key: Any) -> Any:
        if is_a(obj, dict):
            node = self.graph.node(obj)
            if node is None or node.snapshot is None:
                return dict.get(obj, key, ABSENT)
            return node.snapshot.entry(key)
        if kinds.kind_of(obj) not in kinds.CONTAINERS:
            return UNKNOWN
        elements = self.elements(obj)
        return elements[key] if -len(elements) <= key < len(elements) else ABSENT

    def length(self, source: Source, obj: Any) -> Any:
        if source.kind == "dict":
            assert source.base is not None
            return len(self.attrs(self.value(source.base)))
        if kinds.kind_of(obj) not in kinds.CONTAINERS:
            return UNKNOWN
        return len(self.pairs(obj)) if is_a(obj, dict) else len(self.elements(obj))


def _node_problems(entry: Entry, key: int, node: Node, is_young: Callable[[Any], bool | None]) -> list[str]:
    out: list[str] = []
    name = node.source.describe()
    if id(node.obj) != key:
        out.append(f"`{name}` is filed under another object's identity")
    if node.kind != kinds.kind_of(node.obj):
        out.append(f"`{name}` is called a {kinds.NAMES[node.kind]} but is a {kinds.NAMES[kinds.kind_of(node.obj)]}")
    if not starts_at_root(node.source):
        out.append(f"`{name}` does not start at a root")
    value = entry.value(node.source)
    if value is not UNKNOWN and value is not node.obj:
        out.append(f"`{name}` led to another object at entry than the one it stands for")
    # A native field's object may be young: the Python side of a gradient is made when it is first read.
    # An empty dict is not tracked by the collector until it holds a container, so a dict's age can't be told.
    if (
        node.kind not in (*_BY_VALUE, kinds.DICT)
        and node.source.kind not in ("const", "field", "slot")
        and is_young(node.obj)
    ):
        out.append(f"`{name}` stands for an object that the region made itself")
    if (node.written_at or node.forced) and node.snapshot is None:
        out.append(f"`{name}` was written and has no snapshot")
    if node.snapshot is not None and node.snapshot.obj is not node.obj:
        out.append(f"the snapshot of `{name}` is one of another object")
    return out


def _read_problems(entry: Entry, read: Read) -> list[str]:
    name, kind = read.source.describe(), read.kind
    if not isinstance(kind, GuardKind):
        return [f"the read of `{name}` has the unknown kind {kind!r}"]
    if not starts_at_root(read.source):
        return [f"the read of `{name}` does not start at a root"]
    root = read.source.chain()[0]
    if root.kind == "const" and kinds.kind_of(root.key) in kinds.MUTABLE:
        if entry.graph.node(root.key) is None and root is not read.source:
            return [f"the read of `{name}` starts at an object that is no node"]
    if isinstance(read.expected, Source) and not starts_at_root(read.expected):
        return [f"the read of `{name}` is compared with something that does not start at a root"]
    value = entry.value(read.source)
    if value is UNKNOWN:
        return []
    if value is ABSENT and not kind.of_absence:
        return [f"`{name}` was read, but there was nothing at entry"]
    if kind.holds(entry, value, read.expected):
        return []
    return [f"the guard {kind.name!r} on `{name}` does not hold for the recorded entry state"]


def starts_at_root(source: Source) -> bool:
    return isinstance(source.chain()[0].step_kind, Root)
