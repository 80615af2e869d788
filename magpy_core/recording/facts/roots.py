"""Roots: nodes of objects that need no path: classes, functions, modules and namespaces. Key type: Roots."""

from __future__ import annotations

from typing import Any

from magpy_core.guards import kinds as guard
from magpy_core.monitor.events import MaybeSite
from magpy_core.recording.tracker import Tracker
from magpy_core.refgraph import kinds
from magpy_core.refgraph.kinds import is_a
from magpy_core.refgraph.node import Node
from magpy_core.refgraph.source import Source


class Roots(Tracker):
    """Nodes by identity."""

    def const_root(self, obj: Any, label: str | None = None) -> Node:
        """An external node for an object whose identity is already fixed by other guards (a class, module or function)."""
        node = self.refgraph.node(obj)
        if node is None:
            name = label or getattr(obj, "__qualname__", None) or getattr(obj, "__name__", None) or type(obj).__name__
            node = self.refgraph.add(obj, self.sources.const(obj, str(name)))
            if is_a(obj, type):
                self.context.classes.identity_read(obj, self.journal.site)
        return node

    def attribute(self, owner: Any, name: str) -> Source:
        """The source of an attribute of a class, module or function."""
        return self.sources.attr(self.const_root(owner).source, name)

    def guard_absent(self, holder: Source, name: str, site: MaybeSite) -> None:
        """Guard that the ``__dict__`` of ``holder`` has no ``name`` (law: absence is a fact)."""
        self.refgraph.read(self.sources.item(self.sources.make("dict", holder, None), name), guard.ABSENT, None, site)

    def node_for(self, obj: Any) -> Node | None:
        """The external node of ``obj`` (a class, module or function is its own root); None for an internal object."""
        node = self.refgraph.nodes.get(id(obj))
        if node is None:
            kind = kinds.kind_of(obj)
            if kind == kinds.IDENTITY:
                return self.const_root(obj)
            if kind in kinds.MUTABLE:
                self.context.age.assume_internal(obj)
        return node

    def globals_root(self, g: dict[str, Any]) -> Node:
        return self.refgraph.node(g) or self.refgraph.add(g, self.sources.const(g, f"globals of {g.get('__name__', '?')}"))
